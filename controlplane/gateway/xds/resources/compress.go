package resources

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	brotli "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/brotli/compressor/v3"
	gzip "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/compressor/v3"
	zstd "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/compressor/v3"
	compressor "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/compressor/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// compressors are the filters that compress answers. Of those between which a client
// has no preference, Envoy takes the last that is to be chosen first.
var compressors = []struct {
	name, library string
	config        proto.Message
}{
	{"sluice.gzip", "envoy.compression.gzip.compressor", &gzip.Gzip{CompressionLevel: gzip.Gzip_COMPRESSION_LEVEL_5}},
	{"sluice.brotli", "envoy.compression.brotli.compressor", &brotli.Brotli{Quality: u32(4), InputBlockBits: u32(18), WindowBits: u32(18)}},
	{"sluice.zstd", "envoy.compression.zstd.compressor", &zstd.Zstd{}},
}

// compressed are the media types of answers that get smaller. Streams of events are
// not among them: each event would be packed by itself.
var compressed = []string{
	"application/json", "application/problem+json", "application/ld+json", "application/geo+json", "application/vnd.api+json", "application/xml", "application/rss+xml",
	"application/atom+xml", "application/xhtml+xml", "application/javascript", "application/manifest+json", "application/x-ndjson", "application/yaml", "application/wasm",
	"image/svg+xml", "text/css", "text/csv", "text/html", "text/javascript", "text/markdown", "text/plain", "text/xml",
}

// compressFrom is how many bytes an answer must have, if it says how many: fewer fit
// one packet anyway.
const compressFrom = 1024

// compressing are the filters, which are off but on routes that ask.
func compressing() (list []*hcm.HttpFilter) {
	for _, c := range compressors {
		list = append(list, &hcm.HttpFilter{Name: c.name, Disabled: true, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&compressor.Compressor{
			ResponseDirectionConfig: &compressor.Compressor_ResponseDirectionConfig{
				CommonConfig: &compressor.Compressor_CommonDirectionConfig{MinContentLength: u32(compressFrom), ContentType: compressed}, //nolint:staticcheck // the pinned Envoy takes it
				// What is compressed is not the same bytes: a client may still ask whether it has changed.
				WeakenEtagOnCompress: true,
			},
			ChooseFirst:       c.name != "sluice.gzip",
			CompressorLibrary: &core.TypedExtensionConfig{Name: c.library, TypedConfig: pack(c.config)},
		})}})
	}
	return list
}

// compress turns the filters on.
func compress(filters map[string]*anypb.Any) {
	for _, c := range compressors {
		filters[c.name] = pack(&route.FilterConfig{Config: &anypb.Any{}})
	}
}

// settingsOfRoutes says which filters routes of d ask for that a chain without them
// does not have.
func settingsOfRoutes(d config.Document) (compress, names bool) {
	for _, r := range d.Routes {
		compress = compress || r.Compress
		names = names || (r.RequestHeaders != nil || r.ResponseHeaders != nil) && len(namesOf(r)) > 0
	}
	return compress, names
}
