package io.github.semyonsinchenko.safetensors.dataset

import java.nio.file.{Files, Path => LocalPath}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.{Configurator, Property}
import org.apache.spark.sql.types.StructType
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.{CountingFileSystem, Requests, TempDir}

class SnapshotTest extends AnyFunSuite {
  private val conf = new Configuration
  Seq(ChangingFileSystem.setting, CountingFileSystem.setting).foreach { case (name, value) =>
    conf.set(name, value)
  }

  private def listing(rules: ListingRules, paths: Path*): Snapshot =
    Snapshot.of(paths, rules, new StructType, conf)

  private def names(directory: Path): Seq[String] = listing(ListingRules(), directory).files.map(_.name)

  private def changing(directory: LocalPath) = new Path(s"changing:$directory")
  private def counted(directory: LocalPath)  = new Path(s"counted:$directory")

  private def create(file: LocalPath, bytes: Int = 10): Unit = {
    Files.createDirectories(file.getParent)
    Files.write(file, new Array[Byte](bytes))
  }

  /** Commits a dataset of these shards, each of ten bytes, and deletes those that it had before. */
  private def commit(directory: LocalPath, id: String, shards: String*): Unit = {
    shards.foreach(name => create(directory.resolve(name)))
    manifest(directory, id, shards: _*)
    directory.toFile.listFiles.filter(_.getName.endsWith(".safetensors"))
      .filterNot(file => shards.contains(file.getName)).foreach(_.delete())
  }

  private def manifest(directory: LocalPath, id: String, shards: String*): Unit =
    Manifest(id, DatasetMode.KeyValue, Map.empty, Seq(ColumnRecord("x", None, None)),
      shards.map(ShardRecord(_, 1, 10, 8, 0)))
      .write(new Path(directory.toUri), conf)

  /** What is listed when something happens between reading the manifest and listing the directory, `times` over. */
  private def namesWhile(directory: LocalPath, times: Int)(happens: Int => Unit): Seq[String] = {
    var seen = 0
    Changes.beforeListing(_ => if (seen < times) { seen += 1; happens(seen) })(names(changing(directory)))
  }

  test("an overwrite between manifest and listing gives the new dataset") {
    TempDir { directory =>
      commit(directory, "0", "a.safetensors", "b.safetensors")
      val found = namesWhile(directory, 1)(_ => commit(directory, "1", "c.safetensors", "d.safetensors"))
      assert(found == Seq("c.safetensors", "d.safetensors"))
    }
  }

  test("an append between manifest and listing gives the dataset before it") {
    TempDir { directory =>
      commit(directory, "0", "a.safetensors")
      val found = namesWhile(directory, 1)(_ => commit(directory, "1", "a.safetensors", "b.safetensors"))
      assert(found == Seq("a.safetensors"))
    }
  }

  test("several overwrites in a row are followed, and one for each look at the directory is an error") {
    TempDir { directory =>
      def overwrite(i: Int): Unit = commit(directory, i.toString, s"$i.safetensors")
      overwrite(0)
      assert(namesWhile(directory, 4)(overwrite) == Seq("4.safetensors"))
      val error =
        intercept[InvalidRequestException](namesWhile(directory, Int.MaxValue)(i => overwrite(10 + i)))
      assert(error.getMessage.contains(
          s"${changing(directory)} changes faster than it can be listed. Run the query again."))
    }
  }

  test("a dataset that is deleted between manifest and listing is an error") {
    TempDir { directory =>
      val dataset = directory.resolve("dataset")
      create(dataset.resolve("a.safetensors"))
      manifest(dataset, "0", "a.safetensors")
      val error = intercept[InvalidRequestException](namesWhile(dataset, 1) { _ =>
        dataset.toFile.listFiles.foreach(_.delete())
        Files.delete(dataset)
      })
      assert(error.getMessage == s"Path does not exist: ${changing(dataset)}.")
    }
  }

  test("a shard that goes without a commit is an error") {
    TempDir { directory =>
      commit(directory, "0", "a.safetensors", "b.safetensors")
      Files.delete(directory.resolve("b.safetensors"))
      val error = intercept[InvalidRequestException](names(changing(directory)))
      assert(error.getMessage.contains(s"Shard b.safetensors is gone from ${changing(directory)}"))
    }
  }

  test("files that a manifest does not name are counted, and told of in one warning") {
    TempDir { directory =>
      for (day <- 1 to 3) {
        commit(directory.resolve(s"day=$day"), "0", "a.safetensors")
        (1 until day).foreach(i => create(directory.resolve(s"day=$day/left$i.safetensors")))
        create(directory.resolve(s"day=$day/notes.txt"))
      }
      val found = listing(ListingRules(), changing(directory))
      assert(found.others.map(_._2) == Seq(1, 2))
      assert(warnings(found.warnOfOthers()) == Seq(
        s"Not read: 3 safetensors files in ${changing(directory.resolve("day=2"))} and 1 more directories, which the " +
          "dataset_manifest.json or the checkpoint index there does not list."))
      assert(warnings(listing(ListingRules(), changing(directory.resolve("day=1"))).warnOfOthers()).isEmpty)
      // A write is committing: its shards are there before the manifest names them.
      create(directory.resolve("day=3/_commit.lock"))
      assert(listing(ListingRules(), changing(directory.resolve("day=3"))).others.isEmpty)
    }
  }

  private def warnings(body: => Unit): Seq[String] = {
    val said   = mutable.Buffer.empty[String]
    val logger = LogManager.getLogger(Snapshot.getClass.getName.stripSuffix("$")).asInstanceOf[Logger]
    val appender = new AbstractAppender("said", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit =
        if (event.getLevel == Level.WARN) said += event.getMessage.getFormattedMessage
    }
    Configurator.setLevel(logger.getName, Level.WARN)
    appender.start()
    logger.addAppender(appender)
    try body
    finally logger.removeAppender(appender)
    said.toSeq
  }

  /** How many files were opened, or were not there to be opened, paths looked at and directories listed. */
  private def counts(body: => Any): (Int, Int, Int) = {
    val requests = Requests.during(body)._2.values.toSeq
    (requests.map(_.opens).sum, requests.map(_.lookUps).sum, requests.map(_.listings).sum)
  }

  test("a dataset of many shards is known from its manifest, without a listing") {
    TempDir { directory =>
      val shards = (0 to DatasetFiles.MaxListed).map(i => s"$i.safetensors")
      manifest(directory, "0", shards: _*)
      assert(counts {
        val found = listing(ListingRules(), counted(directory)).files
        assert(found.map(_.name) == shards)
        assert(found.last.path == counted(directory.resolve(shards.last)).toString && !found.last.isListed)
      } == ((1, 1, 0)))
      val picked = ListingRules(names = Some("77*"))
      assert(listing(picked, counted(directory)).files.head.name == "77.safetensors")
    }
  }

  test("thousands of files cost one listing and a look for a manifest, and are not opened") {
    TempDir { directory =>
      val shards = (0 until 3000).map(i => f"$i%04d.safetensors")
      shards.foreach(name => create(directory.resolve(name)))
      assert(counts(assert(names(counted(directory)) == shards)) == ((1, 1, 1)))
      manifest(directory, "0", shards.reverse: _*)
      assert(counts(assert(names(counted(directory)) == shards.reverse)) == ((1, 1, 1)))
      val picked = ListingRules(names = Some("2*"))
      assert(counts(assert(listing(picked, counted(directory)).files.size == 1000)) == ((1, 1, 1)))
    }
  }

  test("a thousand directories cost a listing and a look for a manifest each") {
    TempDir { directory =>
      for (day <- 0 until 50; hour <- 0 until 20)
        create(directory.resolve(s"day=$day/hour=$hour/a.safetensors"))
      val once = (1 + 50 + 1000, 1, 1 + 50 + 1000)
      assert(counts {
        val found = listing(ListingRules(), counted(directory))
        assert(found.files.map(_.partition).toSet.size == 1000)
      } == once)
      assert(counts(listing(ListingRules(recursive = true), counted(directory))) == once)
    }
  }

  test("thousands of paths cost a look each, and stay in their order") {
    TempDir { directory =>
      val files = (0 until 2000).map(i => directory.resolve(s"${i * 7919 % 2000}.safetensors"))
      files.foreach(create(_))
      assert(counts {
        val found = listing(ListingRules(), files.map(counted): _*)
        assert(found.files.map(_.name) == files.map(_.getFileName.toString))
      } == ((0, 2000, 0)))
    }
  }
}
