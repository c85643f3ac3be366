package io.github.semyonsinchenko.safetensors.format

import java.util

import scala.collection.mutable
import scala.collection.immutable.{ArraySeq, TreeMap}

/**
 * A parsed header with unchecked offsets. The last occurrence of a repeated name counts.
 *
 * @param repeated the first repeated name and what it names
 */
private[format] final case class ParsedHeader(
    metadata: Map[String, String],
    tensors: util.Collection[TensorInfo],
    repeated: Option[String])

/**
 * Parses a header's JSON as the official library's types do. That also accepts a tensor as an array of its three fields,
 * and a dtype as an object with one null.
 *
 * @throws MalformedJson if it is not a header
 */
private[format] object HeaderParser {

  final val MetadataName = "__metadata__"

  def parse(bytes: Array[Byte], start: Int, end: Int): ParsedHeader =
    new HeaderFields(new JsonScanner(bytes, start, end)).result()

  private final class HeaderFields(json: JsonScanner) {
    // Java's maps compare names with equal hashes. Scala's take quadratic time for names made to collide.
    private val tensors  = new util.LinkedHashMap[String, TensorInfo]
    private var metadata = TreeMap.empty[String, String]
    private var repeated = Option.empty[String]

    def result(): ParsedHeader = {
      var hasMetadata = false
      json.fields {
        case MetadataName if hasMetadata => throw json.fault(s"`${MetadataName}` a second time")
        case MetadataName                => hasMetadata = true; readMetadata()
        case name => noteIf(tensors.put(name, readTensor(name)) != null, s"tensor `$name`")
      }
      json.finish()
      ParsedHeader(metadata, tensors.values, repeated)
    }

    private def readTensor(name: String): TensorInfo =
      try new TensorFields(json, name).read()
      catch { case e: MalformedJson => throw e.in(s"tensor `$name`") }

    private def readMetadata(): Unit =
      if (json.peek() == 'n') json.literal("null")
      else json.fields { key =>
        if (json.peek() != '"') throw json.fault(s"`${MetadataName}` value of `$key` is not a string")
        noteIf(metadata.contains(key), s"key `$key` of `${MetadataName}`")
        metadata = metadata.updated(key, json.string())
      }

    private def noteIf(isRepeated: Boolean, name: => String): Unit =
      if (isRepeated && repeated.isEmpty) repeated = Some(name)
  }

  private final class TensorFields(json: JsonScanner, name: String) {
    private var dtype   = Option.empty[Dtype]
    private var shape   = Option.empty[IndexedSeq[Long]]
    private var offsets = Option.empty[(Long, Long)]

    def read(): TensorInfo = {
      if (json.peek() == '[') {
        val inOrder = Iterator("dtype", "shape", "data_offsets")
        json.elements(if (inOrder.hasNext) read(inOrder.next()) else throw json.fault("a fourth element"))
      } else json.fields(read)
      val (begin, end) = offsets.getOrElse(missing("data_offsets"))
      TensorInfo(name, dtype.getOrElse(missing("dtype")), shape.getOrElse(missing("shape")), begin, end)
    }

    private def missing(field: String) = throw json.fault(s"no `$field`")

    private def read(field: String): Unit = field match {
      case "dtype"        => once(field, dtype); dtype = Some(readDtype())
      case "shape"        => once(field, shape); shape = Some(readNumbers())
      case "data_offsets" => once(field, offsets); offsets = Some(readOffsets())
      case _              => json.skipValue()
    }

    private def once(field: String, value: Option[Any]): Unit =
      if (value.isDefined) throw json.fault(s"`$field` twice")

    private def readDtype(): Dtype = {
      var dtypeName = ""
      if (json.peek() == '{') {
        var count = 0
        json.fields { key => dtypeName = key; count += 1; json.literal("null") }
        if (count != 1) throw json.fault("a dtype that is not one name")
      } else dtypeName = json.string()
      Dtype.of(dtypeName).getOrElse(throw json.fault(s"unknown dtype `$dtypeName`"))
    }

    private def readNumbers(): IndexedSeq[Long] = {
      val numbers = mutable.ArrayBuilder.make[Long]
      json.elements(numbers += json.unsigned())
      ArraySeq.unsafeWrapArray(numbers.result())
    }

    private def readOffsets(): (Long, Long) = {
      val numbers = readNumbers()
      if (numbers.length != 2)
        throw json.fault(s"${numbers.length} data_offsets, expected 2")
      (numbers(0), numbers(1))
    }
  }
}
