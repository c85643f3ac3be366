package io.github.semyonsinchenko.safetensors.dataset

import java.nio.charset.StandardCharsets.UTF_8
import java.util

import com.fasterxml.jackson.core.{JsonGenerator, JsonParser, JsonToken}

import io.github.semyonsinchenko.safetensors.storage.FileNames

/**
 * Reads the shards of a manifest one by one. As a JSON tree, millions of them would not fit in the driver's memory.
 *
 * @param fault throws the error with this detail
 */
private final class ShardsReader(fault: String => Nothing) {

  def read(json: JsonParser): Vector[ShardRecord] = {
    if (json.currentToken != JsonToken.START_ARRAY) fault("`shards` is not a list")
    val shards = Vector.newBuilder[ShardRecord]
    val names  = new util.HashSet[String]
    while (json.nextToken() == JsonToken.START_OBJECT) {
      val shard = readShard(json)
      if (!names.add(shard.file)) fault(s"it names the shard `${shard.file}` twice")
      shards += shard
    }
    if (json.currentToken != JsonToken.END_ARRAY) fault(s"a shard is `${json.getText}`, expected an object")
    shards.result()
  }

  private def readShard(json: JsonParser): ShardRecord = {
    var file: String              = null
    var samples, bytes, dataStart = -1L
    var checksum                  = Option.empty[Int]
    var bucket                    = Option.empty[KeyBucket]
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      val name = json.getText
      json.nextToken()
      name match {
        case "file"          => file = fileName(json)
        case "samples_count" => samples = count(json, name)
        case "bytes"         => bytes = count(json, name)
        case "header_bytes"  => dataStart = count(json, name)
        case "crc32c"        => checksum = Some(checksumOf(json.getText))
        case "key_bucket"    => bucket = Some(readBucket(json))
        case _               => json.skipChildren()
      }
    }
    if (file == null) absent("file")
    if (samples < 0) absent("samples_count")
    if (bytes < 0) absent("bytes")
    if (dataStart < 0) absent("header_bytes")
    ShardRecord(file, samples, bytes, dataStart, checksum.getOrElse(absent("crc32c")), bucket)
  }

  private def readBucket(json: JsonParser): KeyBucket = {
    if (json.currentToken != JsonToken.START_OBJECT)
      fault(s"`key_bucket` is `${json.getText}`, expected an object")
    var buckets, bucket     = -1L
    var first, last: String = null
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      val name = json.getText
      json.nextToken()
      name match {
        case "buckets"   => buckets = count(json, name)
        case "bucket"    => bucket = count(json, name)
        case "first_key" => first = key(json, name)
        case "last_key"  => last = key(json, name)
        case _           => json.skipChildren()
      }
    }
    if (buckets > KeyBucket.MaxBuckets || bucket < 0 || bucket >= buckets) fault(
      s"a `key_bucket` is bucket $bucket of $buckets, expected at most ${KeyBucket.MaxBuckets} buckets, numbered from 0")
    if ((first == null) != (last == null))
      fault("a `key_bucket` has only one of `first_key` and `last_key`")
    KeyBucket(buckets.toInt, bucket.toInt, Option(first).map(_ -> last))
  }

  private def key(json: JsonParser, name: String): String = {
    val key = json.getText
    if (json.currentToken != JsonToken.VALUE_STRING || !UTF_8.newEncoder().canEncode(key))
      fault(s"`$name` is `$key`, expected a string of valid Unicode")
    key
  }

  /** The name of a file in this directory. A manifest must not refer to files elsewhere. */
  private def fileName(json: JsonParser): String = {
    val file = json.getText
    if (json.currentToken != JsonToken.VALUE_STRING || !FileNames.isPlain(file))
      fault(s"the file `$file` is not a file name in its directory")
    file
  }

  private def count(json: JsonParser, name: String): Long = {
    val isLong =
      json.currentToken == JsonToken.VALUE_NUMBER_INT && json.getNumberType != JsonParser.NumberType.BIG_INTEGER
    if (!isLong || json.getLongValue < 0) fault(s"`$name` is `${json.getText}`, expected a count")
    json.getLongValue
  }

  private def checksumOf(hex: String): Int = {
    if (hex.length != 8 || hex.exists(c => !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f')))
      fault(s"`crc32c` is `$hex`, expected 8 hex digits")
    Integer.parseUnsignedInt(hex, 16)
  }

  private def absent(name: String): Nothing = fault(s"it has no `$name`")
}

private object ShardsWriter {

  def write(shards: Iterable[ShardRecord], json: JsonGenerator): Unit = {
    json.writeStartArray()
    shards.foreach(writeShard(_, json))
    json.writeEndArray()
  }

  private def writeShard(shard: ShardRecord, json: JsonGenerator): Unit = {
    json.writeStartObject()
    json.writeStringField("file", shard.file)
    json.writeNumberField("samples_count", shard.samples)
    json.writeNumberField("bytes", shard.bytes)
    json.writeNumberField("header_bytes", shard.headerBytes)
    json.writeStringField("crc32c", hex(shard.crc32c))
    shard.bucket.foreach(writeBucket(_, json))
    json.writeEndObject()
  }

  private def writeBucket(bucket: KeyBucket, json: JsonGenerator): Unit = {
    json.writeObjectFieldStart("key_bucket")
    json.writeNumberField("buckets", bucket.buckets)
    json.writeNumberField("bucket", bucket.bucket)
    bucket.keys.foreach { case (first, last) =>
      json.writeStringField("first_key", first)
      json.writeStringField("last_key", last)
    }
    json.writeEndObject()
  }

  private def hex(checksum: Int): String = {
    val digits = Integer.toHexString(checksum)
    "0" * (8 - digits.length) + digits
  }
}
