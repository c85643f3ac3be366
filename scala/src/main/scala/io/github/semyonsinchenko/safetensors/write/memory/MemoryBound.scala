package io.github.semyonsinchenko.safetensors.write.memory

import org.apache.spark.SparkConf

/**
 * How much direct memory the tasks of a JVM may take. Cluster managers end a container that takes more than the heap and the
 * memory overhead, so an executor takes at most half of the overhead. The JVM limits direct memory to the size of the heap
 * unless the user says otherwise, so that the bound is a quarter of the heap, too.
 *
 * @param heap  bytes of the JVM's heap
 * @param cores the tasks that the JVM may run at once
 */
private[write] final class MemoryBound(conf: SparkConf, heap: Long, cores: Int) {
  import MemoryBound._

  /** The bytes for one task. */
  def perTask: Long = {
    val all = if (isLocal) heap / 4 else math.min(heap / 4, overhead / 2)
    math.max(MinBytes, math.min(MaxBytes, all / cores))
  }

  // With a local master tasks run in the driver, for which no cluster manager plans a container.
  private def isLocal: Boolean = conf.get("spark.master", "local").matches("local(\\[.*])?")

  /** As YARN and Kubernetes compute it; a standalone cluster has none, and the same bound does no harm there. */
  private def overhead: Long = conf.getOption("spark.executor.memoryOverhead") match {
    case Some(_) => conf.getSizeAsMb("spark.executor.memoryOverhead") << 20
    case None =>
      val factor = conf.getDouble("spark.executor.memoryOverheadFactor", 0.1)
      math.max(conf.getSizeAsMb("spark.executor.minMemoryOverhead", "384m") << 20, (factor * heap).toLong)
  }
}

private[write] object MemoryBound {

  // A shard of the default size stays in memory.
  private val MaxBytes = 320L << 20
  private val MinBytes = 16L << 20
}
