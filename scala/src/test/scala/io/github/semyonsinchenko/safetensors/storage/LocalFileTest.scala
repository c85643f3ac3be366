package io.github.semyonsinchenko.safetensors.storage

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

class LocalFileTest extends AnyFunSuite {

  test("a file that another thread creates and deletes is never taken for one of another kind") {
    val file = Files.createTempDirectory("lock").resolve("_commit.lock")
    val writer = new Thread(() =>
      while (!Thread.interrupted()) { Files.write(file, Array[Byte](1)); Files.delete(file) })
    writer.start()
    try (0 until 200000).foreach(_ => LocalFile.checkRegular(file))
    finally { writer.interrupt(); writer.join() }
  }

  test("a directory is refused, and a file that does not exist is left to who opens it") {
    val folder = Files.createTempDirectory("folder")
    LocalFile.checkRegular(folder.resolve("none"))
    assert(intercept[UnreadableFileException](LocalFile.checkRegular(folder)).getMessage.contains(
        "is not a regular file"))
  }
}
