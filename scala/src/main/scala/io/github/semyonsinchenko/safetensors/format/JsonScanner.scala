package io.github.semyonsinchenko.safetensors.format

import java.nio.charset.StandardCharsets.UTF_8

/**
 * Strict JSON over UTF-8 bytes, with the limits and refusals of the official library's parser (serde_json).
 *
 * Jackson would not do: it accepts lone surrogates, which other readers refuse, and limits names to 50,000 characters.
 *
 * @param bytes valid UTF-8 from `start` to `end`
 */
private[format] final class JsonScanner(bytes: Array[Byte], start: Int, end: Int) {
  import JsonScanner._

  private var at    = start
  private var depth = 0

  /** An error at the current position. */
  def fault(what: String): MalformedJson = new MalformedJson(s"$what at byte ${at - start} of the header")

  /** Skips white space and returns the next byte without reading it. Returns -1 at the end. */
  def peek(): Int = {
    while (at < end && isSpace(bytes(at))) at += 1
    if (at < end) bytes(at) else -1
  }

  def expect(char: Char): Unit =
    if (peek() == char) at += 1 else throw fault(s"expected `$char`")

  /** Reads an object. Calls `field` with each name, which must read the value. */
  def fields(field: String => Unit): Unit = nested('{', '}') {
    if (peek() != '"') throw fault("expected a name in quotes")
    val name = string()
    expect(':')
    field(name)
  }

  /** Reads an array. Calls `element` for each element, which must read it. */
  def elements(element: => Unit): Unit = nested('[', ']')(element)

  private def nested(open: Char, close: Char)(item: => Unit): Unit = {
    expect(open)
    depth += 1
    if (depth > MaxDepth) throw fault(s"nesting deeper than $MaxDepth")
    if (peek() != close) {
      item
      while (peek() == ',') { at += 1; item }
    }
    expect(close)
    depth -= 1
  }

  def string(): String = {
    expect('"')
    val from = at
    while (at < end && isPlain(bytes(at))) at += 1
    if (at < end && bytes(at) == '"') { at += 1; new String(bytes, from, at - 1 - from, UTF_8) }
    else escapedString(from)
  }

  private def escapedString(from: Int): String = {
    val text  = new java.lang.StringBuilder
    var plain = from
    while (at < end && bytes(at) != '"') {
      if (bytes(at) == '\\') {
        text.append(new String(bytes, plain, at - plain, UTF_8))
        at += 1
        text.appendCodePoint(escape())
        plain = at
      } else if (isPlain(bytes(at))) at += 1
      else throw fault("a raw control character in a string")
    }
    if (at >= end) throw fault("a string without end")
    at += 1
    text.append(new String(bytes, plain, at - 1 - plain, UTF_8)).toString
  }

  private def escape(): Int = {
    val char = if (at < end) bytes(at) else -1
    at += 1
    char match {
      case '"' | '\\' | '/' => char
      case 'b'              => '\b'
      case 'f'              => '\f'
      case 'n'              => '\n'
      case 'r'              => '\r'
      case 't'              => '\t'
      case 'u'              => unicode()
      case _                => throw fault("an unknown escape in a string")
    }
  }

  private def unicode(): Int = {
    val first = hex4()
    if (Character.isLowSurrogate(first.toChar)) throw fault("a lone surrogate in a string")
    if (!Character.isHighSurrogate(first.toChar)) first
    else {
      if (at + 1 >= end || bytes(at) != '\\' || bytes(at + 1) != 'u')
        throw fault("a lone surrogate in a string")
      at += 2
      val second = hex4()
      if (!Character.isLowSurrogate(second.toChar)) throw fault("a lone surrogate in a string")
      Character.toCodePoint(first.toChar, second.toChar)
    }
  }

  private def hex4(): Int = {
    if (at + 4 > end) throw fault("an escape without end")
    var value = 0
    var i     = 0
    while (i < 4) {
      val digit = Character.digit(bytes(at + i).toChar, 16)
      if (bytes(at + i) < 0 || digit < 0) throw fault("an escape with a wrong digit")
      value = value * 16 + digit
      i += 1
    }
    at += 4
    value
  }

  /** Reads an unsigned 64-bit integer, written as digits only. */
  def unsigned(): Long = {
    peek()
    val from = at
    skipNumber()
    val number = text(from)
    if (!number.forall(c => c >= '0' && c <= '9')) throw fault(s"`$number` is not a whole number from 0 on")
    try java.lang.Long.parseUnsignedLong(number)
    catch { case _: NumberFormatException => throw fault(s"`$number` does not fit 64 bits") }
  }

  /** The text since `from`. */
  private def text(from: Int): String = new String(bytes, from, at - from, UTF_8)

  /** Checks and skips any value. */
  def skipValue(): Unit = peek() match {
    case '{' => fields(_ => skipValue())
    case '[' => elements(skipValue())
    case '"' => string(); ()
    case 't' => literal("true")
    case 'f' => literal("false")
    case 'n' => literal("null")
    case _   => skipNumber()
  }

  def literal(word: String): Unit = {
    peek()
    if (!isNext(word)) throw fault(s"expected `$word`")
    at += word.length
  }

  private def isNext(word: String): Boolean =
    at + word.length <= end && word.indices.forall(i => bytes(at + i) == word(i))

  private def skipNumber(): Unit = {
    if (at < end && bytes(at) == '-') at += 1
    val first = at
    digits()
    if (bytes(first) == '0' && at > first + 1) throw fault("a number with a leading zero")
    if (at < end && bytes(at) == '.') { at += 1; digits() }
    val exponential = at < end && (bytes(at) | 0x20) == 'e'
    if (exponential) {
      at += 1
      if (at < end && (bytes(at) == '+' || bytes(at) == '-')) at += 1
      digits()
    }
    // The library parses other numbers than 64-bit integers as doubles, and refuses those out of range.
    if ((at - first > 308 || exponential) && !DoubleRange.holds(text(first)))
      throw fault("a number out of range")
  }

  private def digits(): Unit = {
    val from = at
    while (at < end && bytes(at) >= '0' && bytes(at) <= '9') at += 1
    if (at == from) throw fault("expected a value")
  }

  /** Checks that only white space follows. */
  def finish(): Unit = if (peek() != -1) throw fault("unexpected text")
}

private[format] object JsonScanner {

  /** serde_json's recursion limit of 128 allows 127 levels. */
  private val MaxDepth = 127

  private def isSpace(b: Byte): Boolean = b == ' ' || b == '\n' || b == '\r' || b == '\t'

  // Bytes over 127 are negative, and part of allowed characters.
  private def isPlain(b: Byte): Boolean = (b >= ' ' || b < 0) && b != '"' && b != '\\'
}

/** The text is not the JSON of a header. */
private[format] final class MalformedJson(message: String)
    extends RuntimeException(message, null, false, false) {

  /** The same error with the part of the header that contains it. */
  def in(part: String): MalformedJson = new MalformedJson(s"$part: $message")
}
