package kubernetes_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// beside finds the service of the example and the edge beside it.
func beside(t *testing.T) (c *cluster, w workload, service, edge corev1.Container) {
	t.Helper()
	c = render(t, "sidecar-example")
	if len(c.workloads) != 1 || len(c.workloads[0].spec.Containers) != 1 || len(c.workloads[0].spec.InitContainers) != 1 {
		t.Fatalf("%+v", c.workloads)
	}
	w = c.workloads[0]
	return c, w, w.spec.Containers[0], w.spec.InitContainers[0]
}

// The edge runs as long as the service and longer, and is hardened as the fleet's are.
func TestASidecarIsAnEdge(t *testing.T) {
	t.Parallel()
	c, w, service, edge := beside(t)
	fleet := render(t, "base")
	var of corev1.Container
	for _, one := range fleet.workloads {
		if one.name == "edge" {
			of = one.spec.Containers[0]
		}
	}
	if edge.RestartPolicy == nil || *edge.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("it is no sidecar container: the pod would wait for its end")
	}
	if !slices.Equal(edge.Args, of.Args) || !strings.Contains(edge.Image, "sluice-edge") {
		t.Errorf("%s %v", edge.Image, edge.Args)
	}
	for _, box := range []corev1.Container{service, edge} {
		s := box.SecurityContext
		if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: %+v", box.Name, s)
		}
		if box.Resources.Requests.Cpu().IsZero() || box.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s has no bounds", box.Name)
		}
	}
	if s := edge.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%+v: a pod of somebody's own may say nothing of it", s)
	}
	for name, p := range map[string]*corev1.Probe{"startup": edge.StartupProbe, "readiness": edge.ReadinessProbe, "liveness": edge.LivenessProbe} {
		if p == nil || p.HTTPGet == nil || !hasPort(edge, p.HTTPGet.Port) {
			t.Errorf("the %s probe asks nothing that the edge has: %+v", name, p)
		}
	}
	settings := map[string]string{}
	for _, from := range edge.EnvFrom {
		if from.ConfigMapRef != nil {
			settings = c.settings[from.ConfigMapRef.Name]
		} else if from.SecretRef.Name != secretOf("edge") {
			t.Errorf("it is given %s", from.SecretRef.Name)
		}
	}
	known, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range settings {
		if !strings.Contains(string(known), "| `"+name+"` |") {
			t.Errorf("%s is no variable of the product", name)
		}
	}
	for _, name := range []string{"SLUICE_PUBLIC_URL", "SLUICE_GATEWAY_ADDR", "SLUICE_EDGE_METRICS_ADDR", "SLUICE_XDS_INSECURE"} {
		if of := fleet.settings["edge-settings"][name]; settings[name] != of {
			t.Errorf("%s is %q, in the fleet %q", name, settings[name], of)
		}
	}
	host, port, _ := strings.Cut(settings["SLUICE_XDS_ADDR"], ":")
	if fleetHost, fleetPort, _ := strings.Cut(fleet.settings["edge-settings"]["SLUICE_XDS_ADDR"], ":"); host != fleetHost+".sluice" || port != fleetPort {
		t.Errorf("it looks for a control plane at %s", settings["SLUICE_XDS_ADDR"])
	}
	if grace := *w.spec.TerminationGracePeriodSeconds; service.Lifecycle.PreStop.Sleep.Seconds+30 > grace {
		t.Errorf("%d s are too few for the pause before the end and the requests under way", grace)
	}
}

// Nobody comes to the service but through the edge: it has no port, the Service leads to
// the edge, and the network lets nothing else in. What it is called leads to the pod
// itself, and is the product's address in the documentation.
func TestASidecarIsTheOnlyWay(t *testing.T) {
	t.Parallel()
	c, w, service, edge := beside(t)
	if len(service.Ports) != 0 || !slices.ContainsFunc(service.Env, func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Value, "127.0.0.1:") }) {
		t.Errorf("the service listens for others: %+v %+v", service.Ports, service.Env)
	}
	if len(c.services) != 1 || !labels.SelectorFromSet(c.services[0].Spec.Selector).Matches(w.labels) || !hasPort(edge, c.services[0].Spec.Ports[0].TargetPort) || c.services[0].Spec.Ports[0].TargetPort.StrVal != "gateway" {
		t.Errorf("the Service leads past the edge: %+v", c.services)
	}
	if len(w.spec.HostAliases) != 1 || w.spec.HostAliases[0].IP != "127.0.0.1" {
		t.Fatalf("%+v", w.spec.HostAliases)
	}
	text, err := os.ReadFile("../../docs/sidecar.md")
	if err != nil {
		t.Fatal(err)
	}
	if name := w.spec.HostAliases[0].Hostnames[0]; !strings.Contains(string(text), `address: "`+name+":3000\"") {
		t.Errorf("the documentation has no product at %s", name)
	}
	for _, p := range c.policies {
		if !matches(t, p.Spec.PodSelector, w.labels) {
			t.Errorf("%s is for no pod", p.Name)
		}
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				if !hasPort(edge, *port.Port) {
					t.Errorf("%s lets in at %s", p.Name, port.Port)
				}
			}
		}
	}
}

// The control plane of the platform lets sidecars in where their namespace is marked, and
// there at the port of edges alone.
func TestSidecarsReachTheControlPlane(t *testing.T) {
	t.Parallel()
	_, w, _, _ := beside(t)
	fleet := render(t, "base")
	marked := labels.Set{"sluice.dev/sidecars": "true"}
	for _, namespace := range []labels.Set{marked, {}} {
		for _, port := range []string{"xds", "api", "admin"} {
			in := slices.ContainsFunc(fleet.policies, func(p *networkingv1.NetworkPolicy) bool {
				return p.Name == "controlplane" && slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
					return onPort(r.Ports, port) && slices.ContainsFunc(r.From, func(from networkingv1.NetworkPolicyPeer) bool {
						return from.NamespaceSelector != nil && matches(t, *from.NamespaceSelector, namespace) && (from.PodSelector == nil || matches(t, *from.PodSelector, w.labels))
					})
				})
			})
			if want := port == "xds" && len(namespace) > 0; in != want {
				t.Errorf("a sidecar in a namespace with the labels %v is let in at %s: %v", namespace, port, in)
			}
		}
	}
}
