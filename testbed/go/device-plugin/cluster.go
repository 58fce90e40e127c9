package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
)

// cluster is the API server, as far as this program needs it.
type cluster struct {
	url, node string
	client    http.Client
}

type pod struct {
	Metadata struct {
		Name, Namespace, UID string
		Annotations          map[string]string
	}
	Spec struct {
		Containers []struct {
			Resources struct{ Limits map[string]string }
		}
	}
}

// asks is how much the pod's containers may have of a resource that is counted.
func (p *pod) asks(resource string) int {
	sum := 0
	for _, container := range p.Spec.Containers {
		amount, _ := strconv.Atoi(container.Resources.Limits[resource])
		sum += amount
	}
	return sum
}

func (c *cluster) connect(ca, cert, key string) error {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	c.client.Transport = &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, MaxIdleConnsPerHost: 8,
	}
	return nil
}

// pending lists the pods of this node that have not started.
func (c *cluster) pending(ctx context.Context) ([]pod, error) {
	var list struct{ Items []pod }
	path := "/api/v1/pods?fieldSelector=status.phase%3DPending%2Cspec.nodeName%3D" + c.node
	err := c.ask(ctx, http.MethodGet, path, nil, &list)
	return list.Items, err
}

func (c *cluster) get(ctx context.Context, namespace, name string) (*pod, error) {
	found := &pod{}
	return found, c.ask(ctx, http.MethodGet, path(namespace, name), nil, found)
}

func (c *cluster) annotate(ctx context.Context, one *pod, annotations map[string]string) error {
	body := map[string]any{"metadata": map[string]any{"uid": one.Metadata.UID, "annotations": annotations}}
	return c.ask(ctx, http.MethodPatch, path(one.Metadata.Namespace, one.Metadata.Name), body, &pod{})
}

func path(namespace, name string) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", namespace, name)
}

func (c *cluster) ask(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	answer, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, read)
	}
	return json.Unmarshal(read, into)
}
