package io.github.semyonsinchenko.safetensors.write.shards

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

class ShardNamesTest extends AnyFunSuite {

  test("names follow the pattern, and their last four digits count the shards of one attempt") {
    val names = new ShardNames(3, UUID.fromString("550e8400-e29b-41d4-a716-44665544abcd"))
    assert(names.next() == "part-00003-550e8400-e29b-41d4-a716-446655440000.safetensors")
    assert(names.next() == "part-00003-550e8400-e29b-41d4-a716-446655440001.safetensors")
  }

  test("the count goes on after 65,536 shards without a name twice") {
    val names = new ShardNames(0, UUID.fromString("550e8400-e29b-41d4-a716-44665544ffff"))
    assert(Seq.fill(70000)(names.next()).toSet.size == 70000)
  }

  test("two attempts at one partition take different names") {
    assert(new ShardNames(0).next() != new ShardNames(0).next())
  }
}
