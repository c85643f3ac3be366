package io.github.semyonsinchenko.safetensors.write.shards

import java.util.UUID

/**
 * The names of a task's shards: `part-{partition:05d}-{uuid}.safetensors`. Each task attempt has its own UUID, so that no
 * two attempts write the same file. The last four hex digits count the shards.
 */
private[write] final class ShardNames(partition: Int, base: UUID = UUID.randomUUID()) {
  private var shards = 0L

  def next(): String = {
    val uuid = new UUID(base.getMostSignificantBits, (base.getLeastSignificantBits & ~0xffffL) + shards)
    shards += 1
    f"part-$partition%05d-$uuid.safetensors"
  }
}

private[write] object ShardNames {
  private val pattern = "part-[0-9]{5,}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\.safetensors".r

  def matches(name: String): Boolean = pattern.matches(name)
}
