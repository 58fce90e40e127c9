// Command pod is what runs on the real node: the pause container of every pod, the first process of the node's
// own namespaces, and a workload for tests that can serve, fetch, wait and fail. It is one static file, so that an
// image of it needs no base.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	patience   = 15 * time.Second
	clusterDNS = "10.96.0.10:53"
)

const usage = `usage:
  pod pause            reap children until SIGTERM or SIGINT
  pod serve ADDRESS    answer every HTTP request with this host's name
  pod get URL          print what the URL answers, trying for 15 s; exit 1 when that is not 200
  pod resolve NAME     print the addresses that the cluster's DNS gives for a name; exit 1 when it does not
  pod sleep SECONDS    exit 0 after that time
  pod exit CODE        exit with that code
  pod env NAME         print that environment variable; exit 1 when it is not set
  pod cat FILE         print that file
  pod fill FOLDER      write 16 MiB to a file there, and wait until it is killed`

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
	case "resolve":
		resolve(argument)
	case "sleep":
		time.Sleep(time.Duration(number(argument)) * time.Second)
	case "exit":
		os.Exit(number(argument))
	case "env":
		value, set := os.LookupEnv(argument)
		if !set {
			fail(argument + " is not set")
		}
		fmt.Println(value)
	case "cat":
		content, err := os.ReadFile(argument)
		if err != nil {
			fail(err.Error())
		}
		os.Stdout.Write(content)
	case "fill":
		if err := os.WriteFile(argument+"/filled", make([]byte, 16<<20), 0o600); err != nil {
			fail(err.Error())
		}
		time.Sleep(time.Hour)
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

// get goes on trying for a while, as a Service is known everywhere only a moment after it is made.
func get(url string) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
	}}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		body, err := fetch(&client, url)
		os.Stdout.Write(body)
		if err == nil {
			return
		}
		if len(body) > 0 || time.Now().After(end) {
			fail(err.Error())
		}
	}
}

func fetch(client *http.Client, url string) ([]byte, error) {
	answer, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return body, err
}

// resolve asks the cluster's DNS, whatever this machine's own settings are.
func resolve(name string) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, clusterDNS)
	}}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	addresses, err := resolver.LookupHost(limit, name)
	if err != nil {
		fail(err.Error())
	}
	fmt.Println(strings.Join(addresses, " "))
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
