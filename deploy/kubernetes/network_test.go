package kubernetes_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// allows says whether a pod of the first workload may talk to a named port of the
// second: one side must let it out, the other in.
func (c *cluster) allows(t *testing.T, from, to workload, port string) bool {
	t.Helper()
	out, in := false, false
	for _, p := range c.policies {
		if matches(t, p.Spec.PodSelector, from.labels) {
			out = out || slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
				return onPort(r.Ports, port) && peer(t, r.To, to.labels)
			})
		}
		if matches(t, p.Spec.PodSelector, to.labels) {
			in = in || slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
				return onPort(r.Ports, port) && peer(t, r.From, from.labels)
			})
		}
	}
	return out && in
}

func matches(t *testing.T, s metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(set)
}

// onPort says whether the ports of a rule have one of that name; none are all.
func onPort(ports []networkingv1.NetworkPolicyPort, name string) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.StrVal == name })
}

// peer says whether pods with labels in this namespace are among the peers of a
// rule; none are all. Blocks of addresses do not count here: which one a pod has
// is not known.
func peer(t *testing.T, peers []networkingv1.NetworkPolicyPeer, set labels.Set) bool {
	t.Helper()
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.NamespaceSelector == nil && p.PodSelector != nil && matches(t, *p.PodSelector, set)
	})
}

func TestWhoMayTalkToWhom(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		allowed := map[string]bool{
			"edge>controlplane:xds": true, "edge>controlplane:api": true, "edge>runtime:http": true, "edge>media:http": true,
			"worker>media:http": true, "media>engine:hls": true, "media>engine:webrtc": true, "runtime>edge:gateway": true,
		}
		tried := 0
		for _, from := range c.workloads {
			for _, to := range c.workloads {
				if to.job {
					continue
				}
				for _, port := range to.spec.Containers[0].Ports {
					name := from.name + ">" + to.name + ":" + port.Name
					tried++
					if got := c.allows(t, from, to, port.Name); got != allowed[name] {
						t.Errorf("%s is allowed: %v", name, got)
					}
				}
			}
		}
		if tried < c.least(15, 30) {
			t.Errorf("only %d ways were tried", tried)
		}
	})
}

// What nothing is said of is closed.
func TestEveryPodIsClosedFirst(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		if !slices.ContainsFunc(c.policies, func(p *networkingv1.NetworkPolicy) bool {
			return len(p.Spec.PodSelector.MatchLabels) == 0 && len(p.Spec.PolicyTypes) == 2 && len(p.Spec.Ingress) == 0 && len(p.Spec.Egress) == 0
		}) {
			t.Error("there is no policy that closes everything")
		}
		for _, p := range c.policies {
			for _, rule := range p.Spec.Ingress {
				if len(rule.From) == 0 && p.Name != "edge" && p.Name != "engine" {
					t.Errorf("anybody may talk to %s", p.Name)
				}
			}
			if n := len(c.chosen(p.Spec.PodSelector.MatchLabels)); n == 0 {
				t.Errorf("%s is for no pod", p.Name)
			}
		}
	})
}
