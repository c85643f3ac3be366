package io.github.semyonsinchenko.safetensors.read.rows

import java.util.concurrent.{Callable, ExecutionException, ExecutorService, Executors, Future, TimeUnit}

import io.github.semyonsinchenko.safetensors.common.UserThreads

/**
 * Reads the next batch in another thread while Spark processes the current one, so a task holds two batches in memory.
 * It does not read ahead after a large batch.
 */
private[read] final class BatchesAhead(batches: RowBatches) extends Batches {
  import BatchesAhead._

  private val memories                  = Vector(new RowMemory, new RowMemory)
  private var last                      = memories.head
  private var pending: Future[RowBatch] = _
  private var thread: ExecutorService   = _

  override def next(): RowBatch = {
    if (pending == null) pending = start(last)
    val batch = result(pending)
    last = batch.memory
    pending =
      if (batch.rows.isEmpty || batch.bytes > RowMemory.LargeBytes) null
      else start(memories.find(_ ne last).get)
    batch
  }

  private def start(memory: RowMemory): Future[RowBatch] = {
    if (thread == null)
      thread = Executors.newSingleThreadExecutor(UserThreads.factory("safetensors-read-ahead"))
    thread.submit((() => batches.next(memory)): Callable[RowBatch])
  }

  private def result(batch: Future[RowBatch]): RowBatch =
    try batch.get()
    catch { case e: ExecutionException => throw e.getCause }

  /** Cancels the read. The reading thread closes the file, because no other thread may close it during a read. */
  override def close(): Unit = if (thread != null) {
    if (pending != null) pending.cancel(true)
    // Not `execute`: an uncaught exception in the thread would end the executor process.
    thread.submit((() => batches.close()): Runnable)
    thread.shutdown()
    awaitEnd(thread)
    thread = null
  }

  private def awaitEnd(thread: ExecutorService): Unit =
    try { thread.awaitTermination(MaxWaitSeconds, TimeUnit.SECONDS); () }
    catch { case _: InterruptedException => Thread.currentThread.interrupt() }
}

private object BatchesAhead {

  // A file system may ignore the interrupt. Then the thread ends after its read.
  private val MaxWaitSeconds = 10L
}
