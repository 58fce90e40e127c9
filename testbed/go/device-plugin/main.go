// Command device-plugin offers the kubelet of the tests' real node cards whose memory pods share. None of it is there:
// what a container is given is the index of a card, in its environment or in a file.
//
// Two resources are registered: the units of memory of all cards, and the cards. Which card a container gets is decided
// in one of two ways, see `gpushare` and `exact`.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	look      = 50 * time.Millisecond
	betweenID = "-_-" // as gpushare's: the card, this, and the number of the unit
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	ids      []string
	cards    int
	sick     string // a file with the indexes of sick cards
	assigner assigner
}

// assigner says what containers with these units are given.
type assigner interface {
	options() *api.DevicePluginOptions
	allocate(ctx context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error)
	start(ctx context.Context, ids []string) error
}

func main() {
	log.SetFlags(log.Lmicroseconds)
	memory := flag.String("memory", "example.org/gpu-mem", "resource of the units of memory")
	count := flag.String("count", "example.org/gpu-count", "resource of the cards")
	cards := flag.Int("cards", 2, "number of cards")
	units := flag.Int("units", 8, "units of memory of each card")
	match := flag.String("match", "gpushare", "how the card of a container is found: gpushare or exact")
	sick := flag.String("sick", "", "file with the indexes of sick cards, which may come, change and go")
	state := flag.String("state", "/var/lib/device-plugin", "folder of the files that containers are given (exact)")
	var server cluster
	flag.StringVar(&server.url, "server", "", "URL of the API server")
	flag.StringVar(&server.node, "node", "", "name of this node")
	ca, cert, key := flag.String("ca", "", "file"), flag.String("cert", "", "file"), flag.String("key", "", "file")
	flag.Parse()
	must(server.connect(*ca, *cert, *key))

	var assigning assigner
	switch *match {
	case "gpushare":
		assigning = &gpushare{cluster: &server, resource: *memory, cards: *cards, units: *units}
	case "exact":
		assigning = &exact{cluster: &server, resource: *memory, folder: *state}
	default:
		log.Fatalf("-match=%s: neither gpushare nor exact", *match)
	}
	var shares, whole []string
	for card := range *cards {
		whole = append(whole, fmt.Sprint("card", card))
		for unit := range *units {
			shares = append(shares, fmt.Sprint("card", card, betweenID, unit))
		}
	}
	// nobody is given anything for the number of cards
	(&plugin{resource: *count, ids: whole, cards: *cards, sick: *sick, assigner: nothing{}}).serve("count")
	(&plugin{resource: *memory, ids: shares, cards: *cards, sick: *sick, assigner: assigning}).serve("memory")
	select {}
}

// serve listens and registers. The kubelet refuses a socket of a name that it is still connected to, so each is new.
func (p *plugin) serve(what string) {
	name := fmt.Sprintf("fairlead-%s-%d.sock", what, time.Now().UnixNano())
	listener, err := net.Listen("unix", filepath.Join(api.DevicePluginPath, name))
	must(err)
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { log.Fatal(server.Serve(listener)) }()

	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	defer kubelet.Close()
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(kubelet).Register(limit, &api.RegisterRequest{
		Version: api.Version, Endpoint: name, ResourceName: p.resource, Options: p.assigner.options(),
	})
	must(err)
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return p.assigner.options(), nil
}

// ListAndWatch sends all devices, and again when another card is sick.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var sent []string
	for first := true; ; first = false {
		content, err := os.ReadFile(p.sick)
		if err != nil && p.sick != "" && !os.IsNotExist(err) {
			return err
		}
		if sick := strings.Fields(string(content)); first || !slices.Equal(sick, sent) {
			devices := make([]*api.Device, len(p.ids))
			for at, id := range p.ids {
				devices[at] = &api.Device{ID: id, Health: api.Healthy}
				if slices.Contains(sick, strings.TrimPrefix(strings.Split(id, betweenID)[0], "card")) {
					devices[at].Health = api.Unhealthy
				}
			}
			if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
			log.Printf("%s: sick cards: %v", p.resource, sick)
			sent = sick
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(look):
		}
	}
}

func (p *plugin) Allocate(ctx context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer, err := p.assigner.allocate(ctx, request)
	log.Printf("allocate %v: %v, %v", request, answer, err)
	return answer, err
}

func (p *plugin) PreStartContainer(
	ctx context.Context, request *api.PreStartContainerRequest,
) (*api.PreStartContainerResponse, error) {
	err := p.assigner.start(ctx, request.DevicesIds)
	log.Printf("start %v: %v", request, err)
	return &api.PreStartContainerResponse{}, err
}

type nothing struct{}

func (nothing) options() *api.DevicePluginOptions { return &api.DevicePluginOptions{} }

func (nothing) allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	return each(request, &api.ContainerAllocateResponse{}), nil
}

func (nothing) start(context.Context, []string) error { return nil }

// each answers the same for every container.
func each(request *api.AllocateRequest, given *api.ContainerAllocateResponse) *api.AllocateResponse {
	answer := &api.AllocateResponse{}
	for range request.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
