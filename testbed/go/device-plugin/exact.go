package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	podResources = "unix:///var/lib/kubelet/pod-resources/kubelet.sock"
	granted      = "fairlead.dev/devices.gpu"
	inside       = "/run/device-plugin" // the folder in a container, with the file `card`
)

// exact asks the kubelet whose the units are before each start of a container, reads that pod's annotation, and writes
// it into a file of the container. Plain init containers cannot have it: the kubelet does not list them.
type exact struct {
	*cluster
	resource, folder string
}

func (*exact) options() *api.DevicePluginOptions {
	return &api.DevicePluginOptions{PreStartRequired: true}
}

func (e *exact) allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		folder := e.of(container.DevicesIds)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Mounts: []*api.Mount{{ContainerPath: inside, HostPath: folder, ReadOnly: true}},
		})
	}
	return answer, nil
}

func (e *exact) start(ctx context.Context, ids []string) error {
	namespace, name, err := e.owner(ctx, ids)
	if err != nil {
		return err
	}
	owner, err := e.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	cards := owner.Metadata.Annotations[granted]
	if cards == "" {
		return fmt.Errorf("%s/%s was granted no device: it has no annotation %s", namespace, name, granted)
	}
	return os.WriteFile(filepath.Join(e.of(ids), "card"), []byte(cards), 0o644)
}

// owner is the pod that has just these units.
func (e *exact) owner(ctx context.Context, ids []string) (namespace, name string, err error) {
	kubelet, err := grpc.NewClient(podResources, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", "", err
	}
	defer kubelet.Close()
	all, err := resources.NewPodResourcesListerClient(kubelet).List(ctx, &resources.ListPodResourcesRequest{})
	if err != nil {
		return "", "", err
	}
	wanted := sorted(ids)
	for _, pod := range all.PodResources {
		for _, container := range pod.Containers {
			var held []string
			for _, devices := range container.Devices { // the kubelet may tell those of one resource in parts
				if devices.ResourceName == e.resource {
					held = append(held, devices.DeviceIds...)
				}
			}
			if slices.Equal(sorted(held), wanted) {
				return pod.Namespace, pod.Name, nil
			}
		}
	}
	return "", "", fmt.Errorf("the kubelet knows no container with %v", wanted)
}

// of is the folder of a container with these units on the node.
func (e *exact) of(ids []string) string {
	return filepath.Join(e.folder, fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(sorted(ids), " "))))[:16])
}

func sorted(ids []string) []string {
	return slices.Sorted(slices.Values(ids))
}
