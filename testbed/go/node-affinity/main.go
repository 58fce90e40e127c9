// Command node-affinity runs kube-scheduler's NodeAffinity plugin over nodes that do not exist yet.
//
// Cluster Autoscaler decides with the scheduler's own filter plugins whether a node made from a node group's template
// would help a pod. This is the part of that simulation that reads node affinity. On its standard input it reads
// {"pod": a Pod, "nodes": [a Node, ...]}, and it prints for each node why it is rejected, empty if it passes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
)

func main() {
	var asked struct {
		Pod   v1.Pod    `json:"pod"`
		Nodes []v1.Node `json:"nodes"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	reasons, err := rejected(context.Background(), &asked.Pod, asked.Nodes)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(reasons); err != nil {
		log.Fatal(err)
	}
}

// rejected returns the plugin's reason for each node by name.
func rejected(ctx context.Context, pod *v1.Pod, nodes []v1.Node) (map[string]string, error) {
	made, err := nodeaffinity.New(ctx, &config.NodeAffinityArgs{}, nil, feature.Features{})
	if err != nil {
		return nil, err
	}
	plugin, is := made.(*nodeaffinity.NodeAffinity)
	if !is {
		return nil, fmt.Errorf("the plugin is a %T", made)
	}
	infos := make([]fwk.NodeInfo, 0, len(nodes))
	for i := range nodes {
		info := framework.NewNodeInfo()
		info.SetNode(&nodes[i])
		infos = append(infos, info)
	}
	state := framework.NewCycleState()
	only, before := plugin.PreFilter(ctx, state, pod, infos)
	reasons := make(map[string]string, len(nodes))
	for _, info := range infos {
		name := info.Node().Name
		switch {
		case before.IsSkip(): // the scheduler does not call Filter then: every node passes
			reasons[name] = ""
		case !before.IsSuccess():
			reasons[name] = before.Message()
		case !only.AllNodes() && !only.NodeNames.Has(name):
			reasons[name] = nodeaffinity.ErrReasonPod
		default:
			reasons[name] = plugin.Filter(ctx, state, pod, info).Message()
		}
	}
	return reasons, nil
}
