// pacer calls extenders as kube-scheduler does: it encodes each request, sends it over a kept connection, and decodes the
// reply. The names come in another order each time, because two workers of the scheduler append them. It calls all
// targets in a random order, waits before each, and prints for each how many nanoseconds both verbs took.
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
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

type target struct {
	URL          string // where to
	Certificates string // folder with the files of a caller; empty: without TLS
	Scores       bool   // whether it is asked for scores
}

type request struct {
	Pod       json.RawMessage
	Nodes     *struct{}
	NodeNames []string
}

type filtered struct {
	NodeNames                  *[]string
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

type score struct {
	Host  string
	Score int64
}

const (
	chunk = 32                     // nodes that a worker of the scheduler takes at once
	work  = 300 * time.Microsecond // of the scheduler between filter and prioritize
	mark  = "@NUMBER@"             // in the pod: makes each another one
)

func client(folder string) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	if folder != "" {
		pem, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
		if err != nil {
			log.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "scheduler.crt"), filepath.Join(folder, "scheduler.key"))
		if err != nil {
			log.Fatal(err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	}
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}

func post(c *http.Client, url string, asked, reply any) time.Duration {
	start := time.Now()
	body, err := json.Marshal(asked)
	if err != nil {
		log.Fatal(err)
	}
	response, err := c.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(response.Body)
		log.Fatalf("%s: %d %.300s", url, response.StatusCode, said)
	}
	if err := json.NewDecoder(response.Body).Decode(reply); err != nil {
		log.Fatalf("%s: %v", url, err)
	}
	return time.Since(start)
}

// inAnyOrder merges what two workers append, each its own chunks in order.
func inAnyOrder(names []string) []string {
	merged := make([]string, 0, len(names))
	for begin := 0; begin < len(names); begin += 2 * chunk {
		middle, end := min(begin+chunk, len(names)), min(begin+2*chunk, len(names))
		one, other := names[begin:middle], names[middle:end]
		for len(one)+len(other) > 0 {
			if len(other) == 0 || (len(one) > 0 && rand.Intn(2) == 0) {
				merged, one = append(merged, one[0]), one[1:]
			} else {
				merged, other = append(merged, other[0]), other[1:]
			}
		}
	}
	return merged
}

// once asks one target about one pod, and returns the nanoseconds of filter and of prioritize.
func once(c *http.Client, t target, pod []byte, names []string) [2]int64 {
	var left filtered
	took := post(c, t.URL+"/filter", request{pod, nil, inAnyOrder(names)}, &left)
	if left.Error != "" || left.NodeNames == nil {
		log.Fatalf("%s: no names, or an error: %q", t.URL, left.Error)
	}
	if !t.Scores {
		return [2]int64{took.Nanoseconds(), 0}
	}
	time.Sleep(work)
	var scores []score
	return [2]int64{took.Nanoseconds(), post(c, t.URL+"/prioritize", request{pod, nil, *left.NodeNames}, &scores).Nanoseconds()}
}

func read(file string) []byte {
	found, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return found
}

func main() {
	calls, warm := flag.Int("calls", 150, "pods that count"), flag.Int("warm", 20, "pods before that do not")
	pause := flag.Duration("pause", 0, "before each pod")
	event := flag.String("event", "", "URL that has the API server send a watch event, before each pod")
	settle := flag.Duration("settle", 3*time.Millisecond, "from that event to the call")
	podFile, namesFile := flag.String("pod", "", "file of the pod"), flag.String("names", "", "file of the names")
	flag.Parse()
	var targets []target
	var clients []*http.Client
	for _, argument := range flag.Args() {
		var t target
		if err := json.Unmarshal([]byte(argument), &t); err != nil {
			log.Fatal(err)
		}
		targets, clients = append(targets, t), append(clients, client(t.Certificates))
	}
	pod := read(*podFile)
	var names []string
	if err := json.Unmarshal(read(*namesFile), &names); err != nil {
		log.Fatal(err)
	}
	took := make([][][2]int64, len(targets))
	for n := -*warm; n < *calls; n++ {
		for _, i := range rand.Perm(len(targets)) {
			time.Sleep(*pause)
			if *event != "" {
				response, err := http.Get(*event)
				if err != nil {
					log.Fatal(err)
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				time.Sleep(*settle)
			}
			this := bytes.ReplaceAll(pod, []byte(mark), fmt.Appendf(nil, "%012d", rand.Int63n(1e12)))
			found := once(clients[i], targets[i], this, names)
			if n >= 0 {
				took[i] = append(took[i], found)
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		log.Fatal(err)
	}
}
