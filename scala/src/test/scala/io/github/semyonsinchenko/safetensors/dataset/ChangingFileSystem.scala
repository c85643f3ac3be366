package io.github.semyonsinchenko.safetensors.dataset

import java.net.URI

import org.apache.hadoop.fs._

/** What happens on every [[ChangingFileSystem]] of this JVM. */
object Changes {
  private var change: Path => Unit = _ => ()

  /** Lets `change` happen before each directory is listed while `body` runs. */
  def beforeListing[A](change: Path => Unit)(body: => A): A = {
    synchronized { this.change = change }
    try body
    finally synchronized { this.change = _ => () }
  }

  private[dataset] def listing(path: Path): Unit = synchronized(change(path))
}

/** The local file system under the scheme `changing`, but for [[Changes]]. */
final class ChangingFileSystem extends FilterFileSystem(new ChangingFileSystem.Local) {

  override def listStatus(path: Path): Array[FileStatus] = {
    Changes.listing(path)
    super.listStatus(path)
  }
}

object ChangingFileSystem {

  /** To be set where Hadoop is to know the scheme. */
  val setting: (String, String) = "fs.changing.impl" -> classOf[ChangingFileSystem].getName

  private final class Local extends RawLocalFileSystem {
    override def getUri: URI       = URI.create("changing:///")
    override def getScheme: String = "changing"
  }
}
