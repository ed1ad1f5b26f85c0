package resources

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	inspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	quic "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/edgeapi"
)

// Listeners name a fixed number of secrets, of which Envoy shows the one that fits the
// name that a client asks for. A certificate that is added or renewed is the content of
// one of them, so that the listener, and the connections on it, stay as they are. What
// has no certificate yet holds one that no client can ask for.

// fewestSlots is how many secrets a listener names when there is a certificate. There
// are as many as the highest in use needs, doubled from there on.
const fewestSlots = 16

// Slots is how many secrets listeners name when the certificates are in the given
// slots; 0: none are.
func Slots(used []int) int {
	if len(used) == 0 {
		return 0
	}
	n := fewestSlots
	for n <= slices.Max(used) {
		n *= 2
	}
	return n
}

// slotName is the name of a secret.
func slotName(slot int) string { return fmt.Sprintf("certificate.%d", slot) }

// CertificateSecret is the secret of a slot: a chain and its key, PEM.
func CertificateSecret(slot int, chain, key []byte) *tls.Secret {
	inline := func(b []byte) *core.DataSource {
		return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: b}}
	}
	return &tls.Secret{Name: slotName(slot), Type: &tls.Secret_TlsCertificate{TlsCertificate: &tls.TlsCertificate{CertificateChain: inline(chain), PrivateKey: inline(key)}}}
}

// UnusedSecret is that of a slot without a certificate. Every replica makes the same.
func UnusedSecret(slot int) *tls.Secret {
	pair := unused()
	return CertificateSecret(slot, pair[0], pair[1])
}

// unused is a certificate for a name under .invalid, and its key, which is no secret.
var unused = sync.OnceValue(func() [2][]byte {
	seed := sha256.Sum256([]byte("a slot without a certificate"))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		panic(err) // the seed is a constant
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "unused"}, DNSNames: []string{"unused.invalid"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	cert, err := x509.CreateCertificate(nil, about, about, key.Public(), key)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return [2][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
})

// withSlots adds the secrets of n slots to what clients may be shown. What is first is
// shown to those that ask for another name, or none.
func withSlots(c *tls.DownstreamTlsContext, n int) *tls.DownstreamTlsContext {
	for slot := range n {
		c.CommonTlsContext.TlsCertificateSdsSecretConfigs = append(c.CommonTlsContext.TlsCertificateSdsSecretConfigs,
			&tls.SdsSecretConfig{Name: slotName(slot), SdsConfig: viaADS()})
	}
	return c
}

// fileCertificates are those of the document that stand in files of the edges. Each has a
// filter chain of its own: a file that an edge lacks must not keep it from serving
// other names.
func fileCertificates(d config.Document) (list []config.Certificate) {
	for _, c := range d.Certificates {
		if c.CertFile != "" {
			list = append(list, c)
		}
	}
	return list
}

// sameCertificates reports whether listeners of two documents have the same chains.
func sameCertificates(a, b config.Document) bool {
	return a.AnswersALPN() == b.AnswersALPN() && reflect.DeepEqual(fileCertificates(a), fileCertificates(b))
}

// fileSecretOf is the name of the secret of a certificate in files.
func fileSecretOf(name string) string { return "certificates." + name }

// addFileCertificates adds the secrets of certificates in files.
func (s *Set) addFileCertificates(d config.Document) {
	for _, c := range fileCertificates(d) {
		own := ownCertificate("", config.TLS{CertFile: c.CertFile, KeyFile: c.KeyFile})
		own.Name = fileSecretOf(c.Name)
		s.Secrets[own.Name] = own
	}
}

// byName adds what of l depends on the name or protocol that a client asks for: a
// filter chain for each certificate in files, and one for authorities that check who
// has a name.
func (s *Set) byName(l *listener.Listener, overUDP bool) {
	files, alpn := fileCertificates(s.doc), s.doc.AnswersALPN() && !overUDP
	if len(files) == 0 && !alpn {
		return
	}
	if !overUDP { // QUIC says both by itself
		l.ListenerFilters = append(l.ListenerFilters, &listener.ListenerFilter{
			Name: "envoy.filters.listener.tls_inspector", ConfigType: &listener.ListenerFilter_TypedConfig{TypedConfig: pack(&inspector.TlsInspector{})},
		})
	}
	first := l.FilterChains[0]
	for _, c := range files {
		chain := proto.CloneOf(first)
		chain.Name = fileSecretOf(c.Name)
		chain.FilterChainMatch = &listener.FilterChainMatch{ServerNames: c.Hosts}
		source := viaADS()
		source.InitialFetchTimeout = seconds(int(secretWithin.Seconds()))
		config := &tls.SdsSecretConfig{Name: fileSecretOf(c.Name), SdsConfig: source}
		if overUDP {
			own := downstreamTLS("", "h3")
			own.CommonTlsContext.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{config}
			chain.TransportSocket = transportSocket("envoy.transport_sockets.quic", &quic.QuicDownstreamTransport{DownstreamTlsContext: own})
		} else {
			own := downstreamTLS("", "h2", "http/1.1")
			own.CommonTlsContext.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{config}
			chain.TransportSocket = transportSocket("envoy.transport_sockets.tls", own)
		}
		l.FilterChains = append(l.FilterChains, chain)
	}
	if alpn {
		l.FilterChains = append(l.FilterChains, challengeChain())
	}
}

// challengeChain hands connections of tls-alpn-01 (RFC 8737), which are nothing but a
// handshake, to the agent.
func challengeChain() *listener.FilterChain {
	return &listener.FilterChain{
		Name:             "acme",
		FilterChainMatch: &listener.FilterChainMatch{ApplicationProtocols: []string{"acme-tls/1"}},
		Filters: []*listener.Filter{{Name: "envoy.filters.network.tcp_proxy", ConfigType: &listener.Filter_TypedConfig{TypedConfig: pack(&tcp.TcpProxy{
			StatPrefix: "acme", ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: edgeapi.ChallengeCluster}, IdleTimeout: seconds(10),
		})}}},
	}
}
