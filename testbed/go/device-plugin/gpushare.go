package main

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"sync"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	indexKey    = "ALIYUN_COM_GPU_MEM_IDX"
	podKey      = "ALIYUN_COM_GPU_MEM_POD"
	deviceKey   = "ALIYUN_COM_GPU_MEM_DEV"
	assignedKey = "ALIYUN_COM_GPU_MEM_ASSIGNED"
	assumedKey  = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
)

// gpushare guesses whose the units are, as the plugin of that name does: the kubelet does not say. Of the node's
// pending pods that are assumed and not assigned it takes the one that was assumed first and asks for as many units as
// this call; pods of equal amounts may so get one another's card.
type gpushare struct {
	*cluster
	resource     string
	cards, units int
	one          sync.Mutex // at a time
}

func (*gpushare) options() *api.DevicePluginOptions { return &api.DevicePluginOptions{} }

func (*gpushare) start(context.Context, []string) error { return nil }

func (g *gpushare) allocate(ctx context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	g.one.Lock()
	defer g.one.Unlock()
	asked := 0
	for _, container := range request.ContainerRequests {
		asked += len(container.DevicesIds)
	}
	pods, err := g.pending(ctx)
	if err != nil {
		return nil, err
	}
	found, index := first(pods, g.resource, asked), -1
	if found != nil {
		if index, err = strconv.Atoi(found.Metadata.Annotations[indexKey]); err != nil || index >= g.cards {
			index = -1
		}
	}
	if index >= 0 {
		if err := g.annotate(ctx, found, map[string]string{assignedKey: "true"}); err != nil {
			return nil, err
		}
		log.Printf("%d units are those of %s/%s", asked, found.Metadata.Namespace, found.Metadata.Name)
	}
	// a container that nobody was found for starts, and is told that it has no card
	return each(request, &api.ContainerAllocateResponse{Envs: map[string]string{
		indexKey: strconv.Itoa(index), podKey: strconv.Itoa(asked), deviceKey: fmt.Sprint(g.units),
	}}), nil
}

// first is the pod with the earliest time that asks for that amount, if there is one.
func first(pods []pod, resource string, amount int) *pod {
	var found *pod
	var earliest uint64
	for at := range pods {
		one := &pods[at]
		assumed, err := strconv.ParseUint(one.Metadata.Annotations[assumedKey], 10, 64)
		if err != nil || one.Metadata.Annotations[assignedKey] != "false" || one.asks(resource) != amount {
			continue
		}
		if found == nil || assumed < earliest {
			found, earliest = one, assumed
		}
	}
	return found
}
