// Command pod is what runs on the real node: the pause container of every pod, the first process of the node's
// own namespaces, and a workload for tests that can serve, fetch, wait and fail. It is one static file, so that an
// image of it needs no base.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const usage = `usage:
  pod pause            reap children until SIGTERM or SIGINT
  pod serve ADDRESS    answer every HTTP request with this host's name
  pod get URL          print what the URL answers; exit 1 when that is not 200
  pod sleep SECONDS    exit 0 after that time
  pod exit CODE        exit with that code`

func main() {
	if len(os.Args) == 2 && os.Args[1] == "pause" {
		pause()
	}
	if len(os.Args) != 3 {
		fail(usage)
	}
	switch argument := os.Args[2]; os.Args[1] {
	case "serve":
		serve(argument)
	case "get":
		get(argument)
	case "sleep":
		time.Sleep(time.Duration(number(argument)) * time.Second)
	case "exit":
		os.Exit(number(argument))
	default:
		fail(usage)
	}
}

// pause is also process 1 of its namespaces: every orphan there becomes its child, and a child that nobody waits
// for stays a zombie.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			os.Exit(0)
		}
		for {
			if reaped, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); reaped <= 0 || err != nil {
				break
			}
		}
	}
}

func serve(address string) {
	name, _ := os.Hostname()
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, name)
	})}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	go func() {
		<-stop.Done()
		server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fail(err.Error())
	}
}

func get(url string) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
	}}
	answer, err := client.Get(url)
	if err != nil {
		fail(err.Error())
	}
	defer answer.Body.Close()
	io.Copy(os.Stdout, answer.Body)
	if answer.StatusCode != http.StatusOK {
		fail(answer.Status)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fail(err.Error())
	}
	return value
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
