// caller calls a URL over one kept connection, as kube-scheduler's client does, and prints for each call how many
// nanoseconds it took. With several URLs it goes round, so that all meet the same noise.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

type target struct {
	URL    string   // where to
	Bodies []string // the files that hold the bodies: one after the other, and again
}

func client(ca, cert, key string) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 2}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			log.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			log.Fatal(err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	}
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}

func call(c *http.Client, url string, body []byte) time.Duration {
	start := time.Now()
	response, err := c.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	said, err := io.ReadAll(response.Body)
	took := time.Since(start)
	response.Body.Close()
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		log.Fatalf("%s: %d %.300s", url, response.StatusCode, said)
	}
	return took
}

func main() {
	ca, cert, key := flag.String("ca", "", ""), flag.String("cert", "", ""), flag.String("key", "", "")
	calls, warm := flag.Int("calls", 500, "calls that count"), flag.Int("warm", 50, "calls before that do not")
	pause := flag.Duration("pause", 0, "after each round")
	flag.Parse()
	var targets []target
	for _, argument := range flag.Args() {
		var t target
		if err := json.Unmarshal([]byte(argument), &t); err != nil {
			log.Fatal(err)
		}
		targets = append(targets, t)
	}
	c := client(*ca, *cert, *key)
	bodies := make([][][]byte, len(targets))
	for i, t := range targets {
		for _, file := range t.Bodies {
			body, err := os.ReadFile(file)
			if err != nil {
				log.Fatal(err)
			}
			bodies[i] = append(bodies[i], body)
		}
	}
	took := make([][]int64, len(targets))
	for n := -*warm; n < *calls; n++ {
		for i, t := range targets {
			d := call(c, t.URL, bodies[i][(n+*warm)%len(bodies[i])])
			if n >= 0 {
				took[i] = append(took[i], d.Nanoseconds())
			}
		}
		time.Sleep(*pause)
	}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
