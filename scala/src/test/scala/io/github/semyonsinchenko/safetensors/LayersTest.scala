package io.github.semyonsinchenko.safetensors

import org.scalatest.funsuite.AnyFunSuite

/** Dependencies go one way: between packages as listed here, and without a cycle among the files of a package. */
class LayersTest extends AnyFunSuite {

  private val sources = SourceTree.main

  /** For each package, the packages of ours that it may import. */
  private val allowed: Map[String, Set[String]] = {
    val numbers = Set("format", "codec")
    val shared  = numbers ++ Set("types", "common")
    val files   = shared + "storage"
    val data    = files ++ Set("index", "dataset")
    Map(
      "format"          -> Set.empty[String],
      "codec"           -> Set("format"),
      "types"           -> numbers,
      "common"          -> Set.empty[String],
      "storage"         -> shared,
      "index"           -> files,
      "dataset"         -> (files + "index"),
      "functions"       -> shared,
      "mlflow"          -> data,
      "read.columns"    -> data,
      "read.conditions" -> (data + "read.columns"),
      "read.rows"       -> (data ++ Set("read.columns", "read.conditions")),
      "read"            -> (data ++ Set("read.columns", "read.conditions", "read.rows")),
      "write.plan"      -> data,
      "write.memory"    -> files,
      "write.encode"    -> (shared ++ Set("write.plan", "write.memory")),
      "write.shards"    -> (data ++ Set("write.plan", "write.memory", "write.encode")),
      "write.commit"    -> (data ++ Set("write.plan", "write.shards")),
      "write" -> (data ++ Set("write.plan", "write.memory", "write.encode", "write.shards", "write.commit"))
    )
  }

  test("every package is listed") {
    assert(sources.packages - SourceTree.Root == allowed.keySet)
  }

  allowed.foreach { case (name, may) =>
    test(
      s"$name imports nothing but ${if (may.isEmpty) "the libraries" else may.toSeq.sorted.mkString(", ")}") {
      for (file <- sources.in(name)) assert(file.imports.diff(may + name) == Set.empty, file.path)
    }
  }

  Seq("format", "codec").foreach { name =>
    test(s"$name does not know Spark or Hadoop") {
      for (file <- sources.in(name)) assert(!file.code.contains("org.apache"), file.path)
    }
  }

  (allowed.keySet + SourceTree.Root).foreach { name =>
    test(s"the files of ${if (name.isEmpty) "the root" else name} have no cycle") {
      assert(sources.cycle(name) == Nil)
    }
  }
}
