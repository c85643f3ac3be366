package io.github.semyonsinchenko.safetensors.common

import java.security.PrivilegedAction
import java.util.concurrent.{Callable, Executors}

import org.apache.hadoop.security.UserGroupInformation
import org.scalatest.funsuite.AnyFunSuite

class UserThreadsTest extends AnyFunSuite {

  private def asReader[A](work: => A): A = {
    val action: PrivilegedAction[A] = () => work
    UserGroupInformation.createRemoteUser("reader").doAs(action)
  }

  private def user: String = UserGroupInformation.getCurrentUser.getShortUserName

  test("a thread acts as the user who made its factory, whoever starts it") {
    val pool = Executors.newSingleThreadExecutor(asReader(UserThreads.factory("test")))
    try assert(pool.submit((() => user): Callable[String]).get == "reader")
    finally pool.shutdown()
  }

  test("parallel work is done as the user who asks for it") {
    assert(asReader(Parallel.map(Seq(1, 2))(_ => user)) == Seq("reader", "reader"))
  }
}
