package envoy

import (
	"bytes"
	_ "embed" // the template
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"text/template"

	"sluice.dev/sluice/filters/edgeapi"
)

// The names that the bootstrap and the control plane's configuration share.
const (
	// NodeCluster is the node.cluster of every edge.
	NodeCluster = "sluice-edge"
	// ListenerGateway and ListenerRuntime name the two listeners; the
	// connection limits of the bootstrap go by them.
	ListenerGateway = "gateway"
	ListenerRuntime = "runtime"
)

// Config is what differs between the bootstraps of two edges. All addresses are
// host:port.
type Config struct {
	// NodeID names the edge; unique in the fleet, and the same after a restart.
	NodeID string
	// Boot tells two starts of one edge apart.
	Boot string
	// GatewayAddr and RuntimeAddr are where the two listeners will be. The
	// control plane learns them from the node's metadata. RuntimeAddr may be empty:
	// there is one listener then.
	GatewayAddr, RuntimeAddr string
	// PlainAddr is where an edge with a certificate listens without encryption: it
	// answers challenges of ACME there and sends all else to https. Empty: nowhere.
	PlainAddr string
	// ChallengeAddr is where the agent completes handshakes of tls-alpn-01. Empty:
	// nowhere.
	ChallengeAddr string
	// AdminAddr is the admin interface's. It can stop Envoy and shows its
	// configuration, so that no address but a loopback one is accepted.
	AdminAddr string
	// ControlPlane lists the control plane's replicas: IP addresses, or names
	// that are then resolved again and again.
	ControlPlane []string
	// FeedToken authenticates the edge to the control plane. Empty: no token.
	FeedToken string
	// Secrets is the folder, an absolute path, into which WriteSecret has put the
	// certificate that clients see. Empty: the listeners speak plain text.
	Secrets string
	// HTTP3 adds HTTP/3 to it.
	HTTP3 bool
	// MaxHeapBytes is where Envoy stops accepting requests. Zero: 2 GiB.
	MaxHeapBytes uint64
	// MaxConnections bounds the downstream connections. Zero: 50,000.
	MaxConnections int
}

//go:embed bootstrap.yaml.tmpl
var bootstrapText string

var bootstrap = template.Must(template.New("bootstrap").Funcs(template.FuncMap{
	"json": toJSON, "address": socketAddress, "discovery": discovery,
}).Parse(bootstrapText))

// Render writes the bootstrap as YAML. Returns an error that names the field if
// one is missing or is not host:port. The result holds the feed token: keep the
// file to its owner.
func Render(cfg Config) ([]byte, error) {
	if cfg.MaxHeapBytes == 0 {
		cfg.MaxHeapBytes = 2 << 30
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 50_000
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	keysync, err := toJSON(struct {
		Cluster string `json:"cluster"`
		Edge    string `json:"edge"`
		Boot    string `json:"boot"`
		Token   string `json:"token"`
	}{edgeapi.FeedCluster, cfg.NodeID, cfg.Boot, cfg.FeedToken})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = bootstrap.Execute(&out, struct {
		Config
		Cluster, FeedCluster, ChallengeCluster, VMID, KeysyncConfig, ListenerSecret string
	}{cfg, NodeCluster, edgeapi.FeedCluster, edgeapi.ChallengeCluster, edgeapi.VMID, keysync, secretFile(cfg.Secrets)})
	return out.Bytes(), err
}

func (c Config) validate() error {
	var errs []error
	if c.NodeID == "" {
		errs = append(errs, errors.New("NodeID is empty"))
	}
	if len(c.ControlPlane) == 0 {
		errs = append(errs, errors.New("ControlPlane names no address"))
	}
	named := map[string]string{"GatewayAddr": c.GatewayAddr, "AdminAddr": c.AdminAddr}
	if c.RuntimeAddr != "" {
		named["RuntimeAddr"] = c.RuntimeAddr
	}
	if c.PlainAddr != "" {
		named["PlainAddr"] = c.PlainAddr
	}
	if c.ChallengeAddr != "" {
		named["ChallengeAddr"] = c.ChallengeAddr
	}
	for i, addr := range c.ControlPlane {
		named[fmt.Sprintf("ControlPlane[%d]", i)] = addr
	}
	for name, addr := range named {
		if _, _, err := splitAddr(addr); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if c.Secrets != "" && !filepath.IsAbs(c.Secrets) {
		errs = append(errs, fmt.Errorf("field Secrets: %q is no absolute path", c.Secrets))
	}
	if c.HTTP3 && c.Secrets == "" {
		errs = append(errs, errors.New("HTTP3 needs Secrets"))
	}
	if host, _, err := splitAddr(c.AdminAddr); err == nil && !loopback(host) {
		errs = append(errs, fmt.Errorf("AdminAddr: %q is no loopback address", c.AdminAddr))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("envoy bootstrap: %w", err)
	}
	return nil
}

// splitAddr reads host:port. An empty host is every address, as for a listener.
func splitAddr(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not host:port", addr)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q has no port between 1 and 65535", addr)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, nil
}

// loopback reports whether host is an address that only this machine reaches.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// toJSON quotes a value; JSON is YAML too.
func toJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// socketAddress renders host:port as Envoy's Address.
func socketAddress(addr string) (string, error) {
	host, port, err := splitAddr(addr)
	if err != nil {
		return "", err
	}
	quoted, err := toJSON(host)
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %d}}", quoted, port), err
}

// discovery is STATIC if all hosts are IP addresses, else STRICT_DNS.
func discovery(addrs []string) (string, error) {
	for _, addr := range addrs {
		host, _, err := splitAddr(addr)
		if err != nil {
			return "", err
		}
		if _, err := netip.ParseAddr(host); err != nil {
			return "STRICT_DNS", nil
		}
	}
	return "STATIC", nil
}
