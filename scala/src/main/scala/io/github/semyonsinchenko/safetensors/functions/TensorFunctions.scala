package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}

/** The functions of a session: name, documentation and the expression of a call. */
object TensorFunctions {

  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression)

  private val arrToSt = describe(
    ArrToSt.name,
    classOf[ArrToSt],
    usage =
      "_FUNC_(array, shape, dtype[, rounding]) - Encodes the numbers of `array` as a tensor, a struct of its " +
        "little-endian bytes, its shape and its dtype. Null if an argument is null.",
    arguments =
      """
        |    Arguments:
        |      * array - the numbers, row-major: bytes, shorts, ints, longs, floats, doubles, decimals or booleans, none
        |          of them null. One that the dtype cannot hold is an error. A fraction is given up going to an integer.
        |      * shape - the dimensions as an array of ints; their product is the array's length. Empty for a scalar.
        |      * dtype - F16, F32, F64, BF16, U8, I8, U16, I16, U32, I32, U64, I64, BOOL, F8_E4M3 or F8_E5M2. The last
        |          two take every number as PyTorch does: one beyond the largest becomes 448 in F8_E4M3, and infinite
        |          in F8_E5M2.
        |      * rounding - what becomes of bits that F16 and BF16 have no room for: 'truncate' (default) cuts them
        |          off, 'nearest_even' rounds as NumPy and PyTorch do.
        |  """.stripMargin,
    examples =
      """
        |    Examples:
        |      > SELECT _FUNC_(array(1, 2, 3, 4, 5, 6), array(2, 3), 'U8').shape;
        |       [2,3]
        |      > SELECT hex(_FUNC_(array(0.1), array(1), 'BF16').data);
        |       CC3D
        |      > SELECT hex(_FUNC_(array(0.1), array(1), 'BF16', 'nearest_even').data);
        |       CD3D
        |  """.stripMargin
  ) {
    case Seq(array, shape, dtype)           => ArrToSt(array, shape, dtype, Literal("truncate"))
    case Seq(array, shape, dtype, rounding) => ArrToSt(array, shape, dtype, rounding)
    case arguments                          => throw wrongCount(ArrToSt.name, "3 or 4", arguments)
  }

  private val stToArray = decoding(
    Elements.Floats,
    "floats. F64 and integers past 2^24 round to the nearest; F64 past the largest float becomes infinity.",
    """
      |      > SELECT _FUNC_(arr_to_st(array(1.5, 2.5), array(2), 'F16'));
      |       [1.5,2.5]
      |  """
  )

  private val stToArrayDouble = decoding(
    Elements.Doubles,
    "doubles. Exact, except that integers past 2^53 round to the nearest.",
    """
      |      > SELECT _FUNC_(arr_to_st(array(0.1, 1e300), array(2), 'F64'));
      |       [0.1,1.0E300]
      |  """
  )

  private val stToArrayLong = decoding(
    Elements.Longs,
    "longs. Fractions are dropped. NaN and numbers out of range are an error.",
    """
      |      > SELECT _FUNC_(arr_to_st(array(9007199254740993L), array(1), 'I64'));
      |       [9007199254740993]
      |  """
  )

  private val stShow = describe(
    StShow.name,
    classOf[StShow],
    usage =
      "_FUNC_(tensor[, values]) - Shows a tensor as text: its dtype, its shape and its first values. Null if an " +
        "argument is null.",
    arguments =
      """
        |    Arguments:
        |      * tensor - a struct of `data`, `shape` and `dtype`, of any dtype. Floats are rounded to six digits. Of F4,
        |          F6_E2M3 and F6_E3M2, whose elements share bytes, the first bytes are shown, in hexadecimal.
        |      * values - how many values to show, 3 by default.
        |  """.stripMargin,
    examples =
      """
        |    Examples:
        |      > SELECT _FUNC_(arr_to_st(array(0.5, 1.25, -3, 4), array(2, 2), 'F32'));
        |       F32[2, 2] 0.5 1.25 -3 ...
        |      > SELECT _FUNC_(arr_to_st(array(7), array(), 'I64'));
        |       I64[] 7
        |      > SELECT _FUNC_(arr_to_st(array(true, false), array(2), 'BOOL'), 1);
        |       BOOL[2] true ...
        |  """.stripMargin
  ) {
    case Seq(tensor)         => StShow(tensor, Literal(StShow.Values))
    case Seq(tensor, values) => StShow(tensor, values)
    case arguments           => throw wrongCount(StShow.name, "1 or 2", arguments)
  }

  val all: Seq[Description] = Seq(arrToSt, stToArray, stToArrayDouble, stToArrayLong, stShow)

  private def decoding(elements: Elements, result: String, examples: String): Description =
    describe(
      elements.function,
      classOf[StToArray],
      usage = s"_FUNC_(tensor) - Decodes a tensor to the flat, row-major array of its elements as $result",
      arguments =
        """
          |    Arguments:
          |      * tensor - a struct of `data`, `shape` and `dtype`, of any dtype but C64 and those of less than 8 bits.
          |  """.stripMargin,
      examples = s"\n    Examples:${examples.stripMargin}"
    ) {
      case Seq(tensor) => StToArray(tensor, elements)
      case arguments   => throw wrongCount(elements.function, "1", arguments)
    }

  private def describe(
      name: String,
      expression: Class[_],
      usage: String,
      arguments: String,
      examples: String)(
      build: Seq[Expression] => Expression): Description = {
    val info = new ExpressionInfo(
      expression.getName, null, name, usage, arguments, examples, "", "", "", "", "scala_udf")
    (FunctionIdentifier(name), info, build)
  }

  private def wrongCount(name: String, expected: String, arguments: Seq[Expression]): AnalysisException =
    new AnalysisException(
      "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
      Map(
        "functionName" -> s"`$name`",
        "expectedNum"  -> expected,
        "actualNum"    -> arguments.length.toString,
        "docroot"      -> "https://spark.apache.org/docs/latest")
    )
}
