package kubernetes_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// podMonitor is the part of the operator's type that is used here.
type podMonitor struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Spec struct {
		Selector struct {
			MatchLabels      map[string]string                 `yaml:"matchLabels"`
			MatchExpressions []metav1.LabelSelectorRequirement `yaml:"matchExpressions"`
		} `yaml:"selector"`
		Endpoints []struct {
			Port          string `yaml:"port"`
			Path          string `yaml:"path"`
			Interval      string `yaml:"interval"`
			Authorization struct {
				Type        string `yaml:"type"`
				Credentials struct {
					Name string `yaml:"name"`
					Key  string `yaml:"key"`
				} `yaml:"credentials"`
			} `yaml:"authorization"`
		} `yaml:"podMetricsEndpoints"`
	} `yaml:"spec"`
}

// monitors refuses members that it does not know.
func monitors(t *testing.T) (list []podMonitor) {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "monitoring")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var m podMonitor
		if err := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(&m); err != nil {
			t.Fatalf("%s: %v", r.CurId(), err)
		}
		if m.APIVersion != "monitoring.coreos.com/v1" || m.Kind != "PodMonitor" || m.Metadata.Namespace != "sluice" {
			t.Errorf("%+v", m)
		}
		list = append(list, m)
	}
	return list
}

// admits says whether the namespace of Prometheus may reach a port of a workload.
func (c *cluster) admits(t *testing.T, to workload, port string) bool {
	t.Helper()
	from := labels.Set{"kubernetes.io/metadata.name": "monitoring"}
	return slices.ContainsFunc(c.policies, func(p *networkingv1.NetworkPolicy) bool {
		return matches(t, p.Spec.PodSelector, to.labels) && slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return onPort(r.Ports, port) && slices.ContainsFunc(r.From, func(peer networkingv1.NetworkPolicyPeer) bool {
				return peer.NamespaceSelector != nil && peer.PodSelector == nil && matches(t, *peer.NamespaceSelector, from)
			})
		})
	})
}

// Every process is scraped once, on a port that it has and that Prometheus may reach; the control
// plane with its token.
func TestEveryProcessIsScraped(t *testing.T) {
	list := monitors(t)
	folders(t, func(t *testing.T, c *cluster) {
		for _, w := range c.workloads {
			times := 0
			for _, m := range list {
				if !matches(t, metav1.LabelSelector{MatchLabels: m.Spec.Selector.MatchLabels, MatchExpressions: m.Spec.Selector.MatchExpressions}, w.labels) {
					continue
				}
				for _, e := range m.Spec.Endpoints {
					times++
					box := w.spec.Containers[0]
					named := slices.ContainsFunc(box.Ports, func(p corev1.ContainerPort) bool { return p.Name == e.Port })
					if e.Path != "/metrics" || !named || !c.admits(t, w, e.Port) {
						t.Errorf("%s cannot be scraped at %s%s", w.name, e.Port, e.Path)
					}
					token := e.Authorization.Credentials
					if w.name == "controlplane" && (token.Name != "sluice-controlplane" || !slices.Contains(secretKeys["controlplane"], token.Key)) {
						t.Errorf("%s is scraped with %+v", w.name, token)
					}
				}
			}
			if want := map[bool]int{false: 1, true: 0}[w.job]; times != want {
				t.Errorf("%s is scraped %d times, want %d", w.name, times, want)
			}
		}
	})
}

// The address at which an edge's agent serves metrics is one that others reach.
func TestMetricsOfEdgesAreReachable(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		if got := c.settings["edge-settings"]["SLUICE_EDGE_METRICS_ADDR"]; got != "0.0.0.0:9902" {
			t.Errorf("edges show their metrics at %q", got)
		}
	})
}

func TestTheManualNamesTheMonitors(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte("kubectl apply -k deploy/kubernetes/monitoring")) {
		t.Error("docs/kubernetes.md does not say how edges are scraped")
	}
}
