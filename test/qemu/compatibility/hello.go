// Goroutines on several threads, a listener on loopback.
package main

import (
	"fmt"
	"net"
	"os/exec"
	"sync"
)

func main() {
	var group sync.WaitGroup
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	group.Add(1)
	go func() {
		defer group.Done()
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		connection.Write([]byte("hello"))
		connection.Close()
	}()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	buffer := make([]byte, 5)
	connection.Read(buffer)
	group.Wait()
	output, err := exec.Command("uname", "-m").Output()
	fmt.Print(string(buffer), " from ", string(output))
	if err != nil {
		panic(err)
	}
}
