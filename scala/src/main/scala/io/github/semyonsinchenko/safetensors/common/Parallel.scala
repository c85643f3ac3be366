package io.github.semyonsinchenko.safetensors.common

import java.util.concurrent.{Callable, ExecutionException, Executors}

import scala.jdk.CollectionConverters._

/** Work on the driver that waits for file systems, side by side. */
private[safetensors] object Parallel {
  private val MaxThreads = 32

  /** The results in order, or the first error. */
  def map[A, B](items: Seq[A])(work: A => B): Seq[B] =
    if (items.size < 2) items.map(work)
    else {
      val pool = Executors.newFixedThreadPool(math.min(items.size, MaxThreads))
      try
        pool.invokeAll(items.map(item => (() => work(item)): Callable[B]).asJava).asScala.map(_.get).toVector
      catch { case e: ExecutionException => throw e.getCause }
      finally { pool.shutdownNow(); () }
    }
}
