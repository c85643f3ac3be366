package io.github.semyonsinchenko.safetensors.common

import java.util.concurrent.{Callable, ExecutionException, Executors}

import scala.jdk.CollectionConverters._

/** Runs work that waits for file systems in parallel, on the driver. */
private[safetensors] object Parallel {
  private val MaxThreads = 32

  /** Returns the results in order, or throws the first error. */
  def map[A, B](items: Seq[A])(work: A => B): Seq[B] =
    if (items.size < 2) items.map(work)
    else {
      val pool = Executors.newFixedThreadPool(math.min(items.size, MaxThreads),
        UserThreads.factory("safetensors-parallel"))
      try
        pool.invokeAll(items.map(item => (() => work(item)): Callable[B]).asJava).asScala.map(_.get).toVector
      catch { case e: ExecutionException => throw e.getCause }
      finally { pool.shutdownNow(); () }
    }
}
