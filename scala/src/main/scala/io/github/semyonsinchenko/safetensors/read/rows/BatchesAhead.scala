package io.github.semyonsinchenko.safetensors.read.rows

import java.util.concurrent.{Callable, ExecutionException, ExecutorService, Executors, Future, TimeUnit}

/**
 * Reads the next batch in a thread of its own while Spark processes the current one. A task has two batches in memory then, so
 * after a batch of large rows it waits until Spark asks for the next one.
 */
private[read] final class BatchesAhead(batches: RowBatches) extends Batches {
  import BatchesAhead._

  private val memories                  = Vector(new RowMemory, new RowMemory)
  private var last                      = RowBatch(Vector.empty, memories.head, 0)
  private var pending: Future[RowBatch] = _

  private var thread: ExecutorService = _

  override def next(): RowBatch = {
    if (pending == null) pending = start(last.memory)
    last = result(pending)
    pending =
      if (last.rows.isEmpty || last.bytes > MaxBytes) null else start(memories.find(_ ne last.memory).get)
    last
  }

  private def start(memory: RowMemory): Future[RowBatch] = {
    if (thread == null) thread = newThread()
    thread.submit((() => batches.next(memory)): Callable[RowBatch])
  }

  private def result(batch: Future[RowBatch]): RowBatch =
    try batch.get()
    catch { case e: ExecutionException => throw e.getCause }

  /** Stops the thread before it closes the file: a stream must not be closed while another thread reads it. */
  override def close(): Unit =
    try if (thread != null) {
        thread.shutdownNow()
        thread.awaitTermination(MaxWaitSeconds, TimeUnit.SECONDS)
        ()
      }
    catch { case _: InterruptedException => Thread.currentThread.interrupt() }
    finally batches.close()
}

private object BatchesAhead {

  // Several batches of usual size; a larger one is a single row.
  private val MaxBytes = 64L << 20

  // A file system may not notice that its reader is interrupted. The thread ends with that read.
  private val MaxWaitSeconds = 10L

  // Made by the task's thread, so that it inherits the task's user and class loader.
  private def newThread(): ExecutorService = Executors.newSingleThreadExecutor { work =>
    val thread = new Thread(work, "safetensors-read-ahead")
    thread.setDaemon(true)
    thread
  }
}
