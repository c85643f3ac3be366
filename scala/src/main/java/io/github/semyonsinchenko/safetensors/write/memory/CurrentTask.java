package io.github.semyonsinchenko.safetensors.write.memory;

import org.apache.spark.TaskContext;
import org.apache.spark.memory.TaskMemoryManager;

/** Java, because Scala code outside Spark may not call `TaskContext.taskMemoryManager`. */
final class CurrentTask {
  private CurrentTask() {}

  static TaskMemoryManager memory() {
    return TaskContext.get().taskMemoryManager();
  }
}
