package io.github.semyonsinchenko.safetensors.storage

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, StandardOpenOption}

import org.apache.hadoop.fs._
import org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException
import org.apache.hadoop.ipc.RemoteException

/**
 * Files that only one of several writers can create. Object stores that replace a file where they should refuse to create it
 * cannot promise that, such as S3A before Hadoop 3.4.2.
 */
object ExclusiveFile {

  /**
   * Creates a file, and returns whether it did: not if there is one.
   *
   * @param text must be unique, as a writer that lost the store's answer recognizes its file by it
   */
  def create(path: Path, text: String, fs: FileSystem): Boolean =
    try LocalFile.of(path, fs) match {
        // Hadoop's own `create` looks first and creates then, so two writers could succeed.
        case Some(file) => Files.write(file, text.getBytes(UTF_8), StandardOpenOption.CREATE_NEW); true
        case None if fs.hasPathCapability(path, ConditionalWrite.IfAbsent) => createIfAbsent(path, text, fs)
        case None                                                          => createNew(path, text, fs); true
      }
    catch {
      case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => false
      case e: RemoteException if isOpen(e)                                             => false
    }

  /** Whether HDFS refused because another writer has created the file and not closed it yet. */
  private def isOpen(e: RemoteException): Boolean =
    e.unwrapRemoteException(classOf[AlreadyBeingCreatedException]) ne e

  private def createNew(path: Path, text: String, fs: FileSystem): Unit = {
    val out = fs.create(path, false)
    try write(out, text)
    catch {
      // The file is this writer's own, and nobody else would delete it.
      case e: IOException =>
        try fs.delete(path, false)
        catch { case again: IOException => e.addSuppressed(again) }
        throw e
    }
  }

  /** For object stores, which check when they have all bytes. */
  private def createIfAbsent(path: Path, text: String, fs: FileSystem): Boolean =
    try {
      write(fs.createFile(path).recursive().must(ConditionalWrite.IfAbsent, true).build(), text)
      true
    } catch {
      case e: IOException => AtomicFile.read(path, fs).map(new String(_, UTF_8)) match {
          // The first of two requests may have arrived although it seemed to fail.
          case Some(found) => found == text
          // The file that was there is gone again.
          case None if e.isInstanceOf[PathIOException] => false
          case None                                    => throw e
        }
    }

  private def write(out: FSDataOutputStream, text: String): Unit =
    try out.write(text.getBytes(UTF_8))
    finally out.close()
}
