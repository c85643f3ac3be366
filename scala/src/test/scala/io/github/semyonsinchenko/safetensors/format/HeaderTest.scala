package io.github.semyonsinchenko.safetensors.format

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}

import org.scalatest.funsuite.AnyFunSuite

/** The interop tests put many more headers to this reader and to the official library; these are the rules one by one. */
class HeaderTest extends AnyFunSuite {

  // Scala takes `\u` for its own even in raw strings, so that `#` stands for the backslash in these headers.
  private def file(header: String, data: Int): Array[Byte] = Bytes.file(header.replace('#', '\\'), data)

  private def read(header: String, data: Int = 0): Header = Header.read(new Bytes(file(header, data)))

  private def accepted(behaviour: String)(header: String, data: Int = 0)(check: Header => Unit): Unit =
    test(s"accepted: $behaviour")(check(read(header, data)))

  private def refused(behaviour: String, refusal: Refusal)(header: String, data: Int, message: String): Unit =
    test(s"refused: $behaviour")(assertRefused(file(header, data), refusal, message))

  private def assertRefused(file: Array[Byte], refusal: Refusal, message: String): Unit = {
    val error = intercept[InvalidFileException](Header.read(new Bytes(file)))
    assert(error.refusal == refusal)
    assert(error.getMessage == s"a.safetensors is not a valid safetensors file: $message ($refusal)")
  }

  accepted("one tensor")("""{"a":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}}""", 16) { header =>
    assert(header.tensors == Seq(TensorInfo("a", Dtype.I32, Vector(2, 2), 0, 16)))
    assert(header.dataStart == 8 + 57)
    assert(header.tensor("a") == header.tensors.headOption && header.tensor("b").isEmpty)
  }
  accepted("no tensors")("{}")(header => assert(header.tensors.isEmpty && header.metadata.isEmpty))
  accepted("names in any order: tensors come in the order of their bytes")(
    """{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}""",
    2)(header => assert(header.tensors.map(_.name) == Seq("a", "b")))
  accepted("metadata")("""{"__metadata__":{"format":"pt"}}""")(h =>
    assert(h.metadata == Map("format" -> "pt")))
  accepted("metadata that is null")("""{"__metadata__":null}""")(h => assert(h.metadata.isEmpty))
  accepted("a scalar")("""{"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}""", 8)(h =>
    assert(h.tensors.head.shape.isEmpty))
  accepted("a dimension of 2^63 beside a zero, left of it")(
    """{"a":{"dtype":"U8","shape":[0,9223372036854775808,4],"data_offsets":[0,0]}}""")(h =>
    assert(h.tensors.head.shape == Seq(0L, Long.MinValue, 4L)))
  accepted("fields that nobody knows")(
    """{"a":{"dtype":"U8","x":[{"y":[1.5e3,true,null,"#u00e4"]}],"shape":[1],"data_offsets":[0,1]}}""", 1)(
    h =>
      assert(h.tensors.size == 1))
  accepted("a tensor as an array of its fields, a dtype as an object with null")(
    """{"a":["I32",[2],[0,8]],"b":{"dtype":{"U8":null},"shape":[1],"data_offsets":[8,9]}}""", 9)(h =>
    assert(h.tensors.map(_.dtype) == Seq(Dtype.I32, Dtype.U8)))
  accepted("escapes, every plane, an empty name")(
    """{"":["U8",[0],[0,0]],"#u0061#n#ud83d#ude00ä":["U8",[1],[0,1]]}""", 1)(h =>
    assert(h.tensors.map(_.name) == Seq("", "a\n😀ä")))
  accepted("a name twice counts as it is last given")(
    """{"a":["U8",[7],[0,7]],"a":["U8",[1],[0,1]]}""", 1)(h => assert(h.tensors.map(_.shape) == Seq(Seq(1L))))
  accepted("white space around")(" \n\t{} \r\n")(h => assert(h.tensors.isEmpty))
  accepted("F4 elements that fill bytes")("""{"a":["F4",[2],[0,1]]}""", 1)(h =>
    assert(h.tensors.head.size == 1))

  test("accepted: a header longer than the first request") {
    val name   = "n" * 200000
    val header = read(s"""{"$name":["U8",[1],[0,1]]}""", 1)
    assert(header.tensors.map(_.name) == Seq(name))
  }

  test("nothing of the byte buffer is read beyond the first request") {
    val source = new Bytes(Bytes.file("""{"a":["U8",[1000000],[0,1000000]]}""", 1000000))
    Header.read(source)
    assert(source.bytesRead == 64 * 1024)
  }

  test("refused: fewer than 8 bytes") {
    assertRefused(Array[Byte](1, 2), Refusal.HeaderTooSmall, "it has 2 bytes, expected 8 or more")
  }
  test("refused: a header over 100,000,000 bytes, without an allocation of that size") {
    assertRefused(Array.fill[Byte](8)(-1), Refusal.HeaderTooLarge,
      "its header has 18446744073709551615 bytes, at most 100000000 are allowed")
  }
  test("refused: a header that leaves the file") {
    assertRefused(Bytes.file("{}").dropRight(1), Refusal.InvalidHeaderLength,
      "its header ends at byte 10, but it has 9 bytes")
  }
  for ((what, bytes) <- Seq("an overlong form" -> "\u00c0\u0080",
      "an encoded surrogate" -> "\u00ed\u00a0\u0080", "half a character" -> "\u00c3"))
    test(s"refused: UTF-8 with $what") {
      val file = Bytes.file("{}", 0).take(8) ++ s"""{"$bytes":1}""".getBytes(ISO_8859_1)
      file(0) = (file.length - 8).toByte
      assertRefused(file, Refusal.InvalidHeader, "its header is not UTF-8")
    }

  private val Json = Refusal.InvalidHeaderDeserialization
  for ((what, header, message) <- Seq(
      ("an empty header", "", "expected `{` at byte 0 of the header"),
      ("a byte order mark", "\ufeff{}", "expected `{` at byte 0 of the header"),
      ("text behind the object", "{}\u0000", "unexpected text at byte 2 of the header"),
      ("a trailing comma", """{"a":["U8",[0],[0,0]],}""",
        "expected a name in quotes at byte 22 of the header"),
      ("an unknown dtype", """{"a":["u8",[0],[0,0]]}""",
        "tensor `a`: unknown dtype `u8` at byte 10 of the header"),
      ("a missing field", """{"a":{"dtype":"U8","shape":[0]}}""",
        "tensor `a`: no `data_offsets` at byte 31 of the header"),
      ("a field twice", """{"a":{"dtype":"U8","dtype":"U8"}}""",
        "tensor `a`: `dtype` twice at byte 27 of the header"),
      ("a fraction in a shape", """{"a":["U8",[2.0],[0,2]]}""",
        "tensor `a`: `2.0` is not a whole number from 0 on at byte 15 of the header"),
      ("a negative offset", """{"a":["U8",[0],[-8,0]]}""",
        "tensor `a`: `-8` is not a whole number from 0 on at byte 18 of the header"),
      ("a dimension of 2^64", """{"a":["U8",[18446744073709551616],[0,0]]}""",
        "tensor `a`: `18446744073709551616` does not fit 64 bits at byte 32 of the header"),
      ("a leading zero", """{"a":["U8",[01],[0,1]]}""",
        "tensor `a`: a number with a leading zero at byte 14 of the header"),
      ("three offsets", """{"a":["U8",[0],[0,0,0]]}""",
        "tensor `a`: 3 data_offsets, expected 2 at byte 22 of the header"),
      ("a tensor that is null", """{"a":null}""", "tensor `a`: expected `{` at byte 5 of the header"),
      ("metadata twice", """{"__metadata__":{},"__metadata__":{}}""",
        "`__metadata__` a second time at byte 34 of the header"),
      ("metadata that is no string", """{"__metadata__":{"a":1}}""",
        "`__metadata__` value of `a` is not a string at byte 21 of the header"),
      ("a lone surrogate", """{"#ud800":["U8",[0],[0,0]]}""",
        "a lone surrogate in a string at byte 8 of the header"),
      ("a raw control character", "{\"a\u0001\":1}",
        "a raw control character in a string at byte 3 of the header"),
      ("a number out of range in an unknown field", """{"a":{"x":1e999}}""",
        "tensor `a`: a number out of range at byte 15 of the header")
    ))
    refused(what, Json)(header, 0, message)

  // Scala's own maps take minutes over so many names of one hash.
  test("accepted: names that are made to have one hash") {
    val names =
      (0 until 1 << 17).map(n => (0 until 17).map(bit => if ((n >> bit & 1) == 0) "Aa" else "BB").mkString)
    val tensors = names.map(name => s""""$name":["U8",[0],[0,0]]""")
    val keys    = names.map(name => s""""$name":"$name"""")
    val header  = read(s"""{"__metadata__":${keys.mkString("{", ",", "}")},${tensors.mkString(",")}}""")
    assert(names.forall(name => header.tensor(name).exists(_.name == name)))
    assert(names.forall(name => header.metadata(name) == name))
  }

  for ((what, header, message) <- Seq(
      ("a tensor", """{"a":["U8",[7],[0,7]],"b":["U8",[0],[1,1]],"#u0061":["U8",[1],[0,1]]}""",
        "its header has tensor `a` twice"),
      ("a key of the metadata", """{"__metadata__":{"k":"1","k":"1"},"a":["U8",[1],[0,1]]}""",
        "its header has key `k` of `__metadata__` twice")
    )) {
    test(s"refused where it is asked for: the name of $what twice") {
      val source = new Bytes(file(header, 1))
      assert(Header.read(source, RepeatedNames.LastCounts).tensor("a").exists(_.shape == Seq(1L)))
      val error = intercept[InvalidFileException](Header.read(source, RepeatedNames.Refused))
      assert(error.refusal == Refusal.RepeatedName)
      assert(error.getMessage == s"a.safetensors is not a valid safetensors file: $message (RepeatedName)")
    }
  }

  test("names that differ, and fields that nobody knows, are not repeated") {
    val header =
      """{"a":{"dtype":"U8","x":1,"x":1,"shape":[1],"data_offsets":[0,1]},"A":["U8",[0],[1,1]],"""" +
        """__metadata__":{"a":"a","A":"a"}}"""
    assert(Header.read(new Bytes(file(header, 1)), RepeatedNames.Refused).tensors.size == 2)
  }

  test("refused: nesting deeper than 127") {
    def nested(depth: Int) =
      """{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":""" + "[" * depth + "]" * depth + "}}"
    assert(read(nested(125)).tensors.size == 1)
    assert(intercept[InvalidFileException](read(nested(126))).refusal == Json)
  }

  refused("a hole before the first tensor", Refusal.InvalidOffset)(
    """{"a":["U8",[1],[1,2]]}""", 2, "tensor `a` begins at byte 1, expected 0")
  refused("an overlap", Refusal.InvalidOffset)(
    """{"a":["U8",[2],[0,2]],"b":["U8",[2],[1,3]]}""", 3, "tensor `b` begins at byte 1, expected 2")
  refused("an end before the beginning", Refusal.InvalidOffset)(
    """{"a":["U8",[1],[0,1]],"b":["U8",[0],[1,0]]}""", 1, "tensor `b` ends at byte 0, before it begins")
  refused("a product of dimensions over 64 bits, though a zero follows", Refusal.ValidationOverflow)(
    """{"a":["U8",[9223372036854775808,4,0],[0,0]]}""", 0,
    "tensor `a` has the shape [9223372036854775808, 4, 0], too large for 64 bits")
  refused("elements that fill no whole bytes", Refusal.MisalignedSlice)(
    """{"a":["F4",[3],[0,2]]}""", 2, "tensor `a` has 12 bits, which is not a whole number of bytes")
  refused("offsets that do not fit the shape", Refusal.TensorInvalidInfo)(
    """{"a":["I32",[2],[0,4]]}""", 4, "tensor `a` has 4 bytes, but shape [2] of I32 takes 8")
  refused("bytes behind the last tensor", Refusal.MetadataIncompleteBuffer)(
    """{"a":["U8",[1],[0,1]]}""", 2, "its tensors end at byte 1 of the byte buffer, which has 2 bytes")
  refused("a missing byte", Refusal.MetadataIncompleteBuffer)(
    """{"a":["U8",[2],[0,2]]}""", 1, "its tensors end at byte 2 of the byte buffer, which has 1 bytes")

  test("a message shows both ends of a name that is too long for one") {
    val name  = "begin" + "n" * 1000000 + "end"
    val error = intercept[InvalidFileException](read(s"""{"$name":["U8",[1],[1,2]]}""", 2))
    assert(error.getMessage.length < 1200)
    assert(error.getMessage.contains("tensor `beginnnn") && error.getMessage.contains(
      "nnnend` begins at byte 1, expected 0"))
  }

  test("what is written is what the official library writes, and is read again") {
    val tensors =
      Seq(TensorInfo("b", Dtype.F32, Vector(2), 0, 8), TensorInfo("ä\"\n\u0001", Dtype.U8, Vector(), 8, 9))
    val bytes = HeaderWriter.bytes(Map("b" -> "2", "a" -> "1"), tensors)
    val json = """{"__metadata__":{"a":"1","b":"2"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},""" +
      """"ä#"#n#u0001":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}"""
    assert(new String(bytes.drop(8), UTF_8).stripTrailing == json.replace('#', '\\'))
    assert(bytes.length % 8 == 0)
    val header = Header.read(new Bytes(bytes ++ new Array[Byte](9)))
    assert(header.tensors == tensors && header.metadata == Map("a" -> "1",
      "b" -> "2") && header.dataStart == bytes.length)
  }

  test(
    "tensors stand by dtype from the widest, then by name as UTF-8 bytes, which UTF-16 would sort otherwise") {
    val names = Seq((Dtype.U8, "a"), (Dtype.F32, "😀"), (Dtype.F32, "\uffff"), (Dtype.U64, "z"),
      (Dtype.BF16, "m"), (Dtype.F16, "n"))
    val sorted = names.sorted(HeaderWriter.order)
    assert(sorted.map(_._2) == Seq("z", "\uffff", "😀", "m", "n", "a"))
  }

  test("a name's length is that of its JSON") {
    def header(name: String) =
      HeaderWriter.bytes(Map.empty, Seq(TensorInfo(name, Dtype.U8, Vector(0), 0, 0))).drop(8)
    val empty = new String(header(""), UTF_8).stripTrailing.length
    for (name <- (0 to 0x100).map(_.toChar.toString) ++ Seq("ключ", "😀", "a\"b\\c\u0001"))
      assert(HeaderWriter.length(name) == new String(header(name), UTF_8).stripTrailing.getBytes(
        UTF_8).length - empty)
  }
}
