// limit is the least that an extender can do: it reads the body, parses nothing and sends the names back as they came.
// With a folder of certificates it does so over mutual TLS. With -keep, and over TLS, the connection is kept.
// With -replies it sends recorded replies instead: what is left of a call is what the scheduler needs for them.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// after gives what follows a key to the end of the object.
func after(body []byte, key string) []byte {
	at := bytes.LastIndex(body, []byte(key))
	if at < 0 {
		return []byte("null}")
	}
	return body[at+len(key):]
}

var (
	keep    = flag.Bool("keep", false, "send the length of each reply, so that the scheduler keeps its connection")
	replies = flag.String("replies", "", "a folder with the files filter and prioritize, which are the replies")
)

// recorded answers with a file of the folder of replies.
func recorded(verb string) http.HandlerFunc {
	reply, err := os.ReadFile(filepath.Join(*replies, verb))
	if err != nil {
		log.Fatal(err)
	}
	return handle(func([]byte) []byte { return reply })
}

// handle answers as Go does by itself: a long reply comes in chunks, and the scheduler opens a connection for each call.
// Over TLS each reply has a length, and the connection is kept: otherwise handshakes would be measured.
func handle(answer func([]byte) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 0, max(r.ContentLength, 512))
		buffer := bytes.NewBuffer(body)
		if _, err := io.Copy(buffer, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		reply := answer(buffer.Bytes())
		if *keep || r.TLS != nil {
			w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
		}
		_, _ = w.Write(reply)
	}
}

// serveTLS asks for a client's certificate, and speaks HTTP/1.1 as all who are compared.
func serveTLS(address, folder string) error {
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	config := &tls.Config{ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	none := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	server := &http.Server{Addr: address, TLSConfig: config, TLSNextProto: none}
	return server.ListenAndServeTLS(filepath.Join(folder, "server.crt"), filepath.Join(folder, "server.key"))
}

func main() {
	flag.Parse()
	filter := handle(func(body []byte) []byte {
		return append([]byte(`{"Error":"","NodeNames":`), after(body, `"NodeNames":`)...)
	})
	preempt := handle(func(body []byte) []byte {
		return append([]byte(`{"NodeNameToMetaVictims":`), after(body, `"NodeNameToMetaVictims":`)...)
	})
	prioritize := handle(func([]byte) []byte { return []byte("[]") })
	if *replies != "" {
		filter, prioritize = recorded("filter"), recorded("prioritize")
	}
	for _, prefix := range []string{"", "/ignore"} {
		http.HandleFunc(prefix+"/filter", filter)
		http.HandleFunc(prefix+"/preempt", preempt)
	}
	http.HandleFunc("/prioritize", prioritize)
	if flag.NArg() > 1 {
		log.Fatal(serveTLS(flag.Arg(0), flag.Arg(1)))
	}
	log.Fatal(http.ListenAndServe(flag.Arg(0), nil))
}
