package resources

import (
	"net"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// pack wraps m, always in the same bytes. It panics when m cannot be encoded,
// which only a message that this package built wrongly can cause.
func pack(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(err)
	}
	return a
}

func seconds(n int) *durationpb.Duration   { return durationpb.New(time.Duration(n) * time.Second) }
func u32(n uint32) *wrapperspb.UInt32Value { return wrapperspb.UInt32(n) }
func extension(name string, m proto.Message) *core.TypedExtensionConfig {
	return &core.TypedExtensionConfig{Name: name, TypedConfig: pack(m)}
}

// viaADS says that a resource comes over the same stream as all others.
func viaADS() *core.ConfigSource {
	return &core.ConfigSource{
		ResourceApiVersion:    core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		// How long a listener or cluster waits for what it depends on before it
		// goes on without. Without limit: a listener must not open before its
		// filters are there.
		InitialFetchTimeout: durationpb.New(0),
	}
}

func socketAddress(hostport string) (*core.Address, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(n)},
	}}}, nil
}

// object builds a JSON object of texts for Envoy's formatters.
func object(fields map[string]string) *structpb.Struct {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for k, v := range fields {
		s.Fields[k] = structpb.NewStringValue(v)
	}
	return s
}

// defaultHeader sets a header that the message does not have.
func defaultHeader(name, value string) *core.HeaderValueOption {
	return &core.HeaderValueOption{
		Header:       &core.HeaderValue{Key: name, Value: value},
		AppendAction: core.HeaderValueOption_ADD_IF_ABSENT,
	}
}

// replaceHeader sets a header whatever the message has under its name.
func replaceHeader(name, value string) *core.HeaderValueOption {
	o := defaultHeader(name, value)
	o.AppendAction = core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	return o
}
