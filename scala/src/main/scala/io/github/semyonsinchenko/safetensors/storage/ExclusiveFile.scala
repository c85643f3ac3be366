package io.github.semyonsinchenko.safetensors.storage

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, StandardOpenOption}

import org.apache.hadoop.fs._
import org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException
import org.apache.hadoop.ipc.RemoteException

/**
 * Creates files that only one of several writers can create. Object stores that replace an existing file instead of
 * failing cannot guarantee this, such as S3A before Hadoop 3.4.2.
 */
object ExclusiveFile {

  /**
   * Creates a file. Returns false if it exists.
   *
   * @param text must be unique, so that a writer recognizes its own file if the response of the store was lost
   */
  def create(path: Path, text: String, fs: FileSystem): Boolean =
    try LocalFile.of(path, fs) match {
        // Hadoop's `create` checks first and then creates, so two writers could succeed.
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
      // This writer created the file, so no other writer would delete it.
      case e: IOException =>
        try fs.delete(path, false)
        catch { case again: IOException => e.addSuppressed(again) }
        throw e
    }
  }

  /** For object stores, which check the condition after they have received all bytes. */
  private def createIfAbsent(path: Path, text: String, fs: FileSystem): Boolean =
    try {
      write(fs.createFile(path).recursive().must(ConditionalWrite.IfAbsent, true).build(), text)
      true
    } catch {
      case e: IOException => AtomicFile.read(path, fs).map(new String(_, UTF_8)) match {
          // A request may have succeeded although it seemed to fail, so that its retry failed.
          case Some(found) => found == text
          // The existing file was deleted in the meantime.
          case None if e.isInstanceOf[PathIOException] => false
          case None                                    => throw e
        }
    }

  private def write(out: FSDataOutputStream, text: String): Unit =
    try out.write(text.getBytes(UTF_8))
    finally out.close()
}
