package io.github.semyonsinchenko.safetensors.format

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

class LayersTest extends AnyFunSuite {

  private val main = Paths.get("scala/src/main/scala/io/github/semyonsinchenko/safetensors")

  private def sources(folder: String): Seq[Path] =
    Files.walk(main.resolve(folder)).iterator.asScala.filter(_.toString.endsWith(".scala")).toSeq

  private def mustNotKnow(folder: String, forbidden: String*): Unit =
    test(s"$folder does not know ${forbidden.mkString(", ")}") {
      assert(sources(folder).nonEmpty)
      for (file <- sources(folder); name <- forbidden)
        assert(!Files.readString(file).contains(name), file)
    }

  private def layers(names: String*): Seq[String] = names.map("semyonsinchenko.safetensors." + _)

  mustNotKnow("format",
    "org.apache" +: layers("codec", "dataset", "read", "write", "functions", "mlflow"): _*)
  mustNotKnow("codec", "org.apache" +: layers("dataset", "read", "write", "functions", "mlflow"): _*)
  mustNotKnow("dataset", layers("read", "write", "functions", "mlflow"): _*)
  mustNotKnow("read", layers("write", "functions", "mlflow"): _*)
  mustNotKnow("write", layers("read", "functions", "mlflow"): _*)
  mustNotKnow("functions", layers("read", "write", "mlflow"): _*)
  mustNotKnow("mlflow", layers("read", "write", "functions"): _*)
}
