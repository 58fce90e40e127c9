// Command cert-manager runs cert-manager's controllers and its CA injector in one process, for one cluster.
//
// The programs that cert-manager ships are modules of their own that replace this one by a folder of their tree, so that
// they cannot be built as dependencies; their parts can. Its admission webhook is left out: it only refuses and defaults.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"

	cmscheme "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/util"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	workers        = 2
	backoffAtFirst = time.Hour
	backoffAtMost  = 32 * time.Hour
)

func main() {
	flags := flag.NewFlagSet("cert-manager", flag.ExitOnError) // the global set has a -kubeconfig of controller-runtime
	kubeconfig := flags.String("kubeconfig", "", "file with the cluster's address and credentials")
	namespace := flags.String("cluster-resource-namespace", "cert-manager", "namespace of the Secrets of cluster issuers")
	flags.Parse(os.Args[1:])
	ctrl.SetLogger(klog.NewKlogr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan error)
	if err := runControllers(ctx, *kubeconfig, *namespace, ended); err != nil {
		log.Fatal(err)
	}
	if err := runInjector(ctx, *kubeconfig, ended); err != nil {
		log.Fatal(err)
	}
	select {
	case err := <-ended:
		log.Fatal(err)
	case <-ctx.Done():
	}
}

func runControllers(ctx context.Context, kubeconfig, namespace string, ended chan<- error) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*"},
			CertificateRequestMinimumBackoffDuration: backoffAtFirst,
			CertificateRequestMaximumBackoffDuration: backoffAtMost,
		},
	})
	if err != nil {
		return err
	}
	of, err := factory.Build()
	if err != nil {
		return err
	}
	for name, construct := range controller.Known() {
		one, err := construct(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		go func() { ended <- fmt.Errorf("%s ended: %w", name, one.Run(workers, ctx)) }()
	}
	of.SharedInformerFactory.Start(ctx.Done())
	of.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

func runInjector(ctx context.Context, kubeconfig string, ended chan<- error) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, cmscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config = util.RestConfigWithUserAgent(config, "cainjector") // its field manager is made from it
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	options := cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor:        map[string]bool{cainjector.ValidatingWebhookConfigurationName: true},
	}
	if err := cainjector.RegisterAllInjectors(ctx, manager, options); err != nil {
		return err
	}
	go func() { ended <- fmt.Errorf("the injector ended: %w", manager.Start(ctx)) }()
	return nil
}
