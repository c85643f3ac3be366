package io.github.semyonsinchenko.safetensors.functions

import scala.jdk.CollectionConverters._

import org.openjdk.jmh.results.RunResult
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.{CommandLineOptions, OptionsBuilder}

/** `make jmh`: runs the benchmarks, and prints how fast each is as a ratio to copying the same floats. JMH's options may be given. */
object FunctionsTable {

  private val aims = Map("F32" -> 0.5, "BF16" -> 0.25, "F16" -> 0.1)

  def main(arguments: Array[String]): Unit = {
    val options = new OptionsBuilder()
      .parent(new CommandLineOptions(arguments: _*))
      .include("CopyBenchmark|FunctionsBenchmark")
      .build()
    println(table(new Runner(options).run().asScala.toSeq))
  }

  private def table(results: Seq[RunResult]): String = {
    val (copies, functions) = results.partition(name(_).startsWith("to"))
    val lines = for ((elements, ofSize) <- functions.groupBy(elementsOf).toSeq.sortBy(_._1)) yield {
      def copy(to: String) = fastest(copies.find(r => elementsOf(r) == elements && name(r) == to).get)
      val own              = copies.filter(elementsOf(_) == elements) ++ ofSize
      own.map(r => line(elements, r, copy("toNewArray"), copy("toSameArray"))).mkString
    }
    f"%n| elements | | microseconds | x a copy to a new array | aim | x a copy to the same array |%n|---|---|---|---|---|---|%n" +
      lines.mkString
  }

  private def line(elements: Int, result: RunResult, newArray: Double, sameArray: Double): String = {
    val dtype = Option(result.getParams.getParam("dtype"))
    val label = dtype.fold("System.arraycopy ")(_ + " ") + name(result)
    val aim   = dtype.fold("")(aims(_).toString)
    val taken = fastest(result)
    f"| $elements%,d | $label | ${taken / 1000}%.2f | ${newArray / taken}%.2f | $aim | ${sameArray / taken}%.2f |%n"
  }

  private def elementsOf(result: RunResult): Int = result.getParams.getParam("elements").toInt

  private def name(result: RunResult): String = result.getPrimaryResult.getLabel

  /** What else the machine does makes iterations slower, never faster. */
  private def fastest(result: RunResult): Double = result.getPrimaryResult.getStatistics.getMin
}
