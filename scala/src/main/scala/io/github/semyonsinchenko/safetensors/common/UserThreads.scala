package io.github.semyonsinchenko.safetensors.common

import java.security.PrivilegedAction
import java.util.concurrent.ThreadFactory

import org.apache.hadoop.security.UserGroupInformation

/** Makes daemon threads that act as the user of the thread that made the factory. From Java 24 on, threads do not inherit it. */
private[safetensors] object UserThreads {

  def factory(name: String): ThreadFactory = {
    val user = UserGroupInformation.getCurrentUser
    work => {
      val asUser: PrivilegedAction[Unit] = () => work.run()
      val thread                         = new Thread(() => user.doAs(asUser), name)
      thread.setDaemon(true)
      thread
    }
  }
}
