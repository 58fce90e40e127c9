// bare is what most extenders are: net/http, encoding/json and the types of the API; it lets every node pass.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"

	extender "k8s.io/kube-scheduler/extender/v1"
)

func handle[In, Out any](answer func(*In) Out) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var args In
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, err := json.Marshal(answer(&args))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

func filter(args *extender.ExtenderArgs) extender.ExtenderFilterResult {
	return extender.ExtenderFilterResult{Nodes: args.Nodes, NodeNames: args.NodeNames}
}

func prioritize(args *extender.ExtenderArgs) extender.HostPriorityList {
	scores := extender.HostPriorityList{}
	if args.NodeNames != nil {
		for _, name := range *args.NodeNames {
			scores = append(scores, extender.HostPriority{Host: name})
		}
	} else if args.Nodes != nil {
		for i := range args.Nodes.Items {
			scores = append(scores, extender.HostPriority{Host: args.Nodes.Items[i].Name})
		}
	}
	return scores
}

func preempt(args *extender.ExtenderPreemptionArgs) extender.ExtenderPreemptionResult {
	return extender.ExtenderPreemptionResult{NodeNameToMetaVictims: args.NodeNameToMetaVictims}
}

func main() {
	for _, prefix := range []string{"", "/ignore"} {
		http.HandleFunc(prefix+"/filter", handle(filter))
		http.HandleFunc(prefix+"/preempt", handle(preempt))
	}
	http.HandleFunc("/prioritize", handle(prioritize))
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
