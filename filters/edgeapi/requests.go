package edgeapi

import "time"

// RequestsPath is where agents send what they have recorded of requests: a
// RequestBatch.
const RequestsPath = "/fleet/v1/requests"

// The line that Envoy writes of a request begins with {"#":"XY", where X says
// whether the agent prints it and Y whether it records it.
const (
	LineMark = "#" // sorts before the other fields, as Envoy does
	MarkAll  = "a" // print all; record with the path
	MarkSome = "s" // print failures; record without the path
	MarkNone = "n"
)

// EndedDetail begins the response code details of a connection that the edge filter has
// ended; behind it is the code of the error that the next request of its credential gets.
const EndedDetail = "ended_by_edge:"

// The runtime keys of Envoy by which the agent says of how many requests out of
// WholeSample it wants lines.
const (
	SuccessSample = "sluice.requests.success"
	FailureSample = "sluice.requests.failure"
	WholeSample   = 1_000_000
)

// Bounds of what an agent sends and a control plane takes.
const (
	MaxRequestBatch = 200     // requests in a batch
	MaxBlocks       = 12      // of records
	MaxRequestBytes = 8 << 20 // of a batch
)

// RequestBatch is what one edge has recorded since the last.
type RequestBatch struct {
	Edge string `json:"edge"`
	// Dropped counts requests that were not recorded as there was no room, by account;
	// "" of callers that nobody knows.
	Dropped  map[string]int64 `json:"dropped,omitempty"`
	Requests []Request        `json:"requests"`
	// Recorded are blocks of package recording, oldest first: of each request a line.
	Recorded [][]byte `json:"recorded,omitempty"`
}

// Request is what is recorded of one request. Fields may be added: who reads takes
// what it knows and keeps to the bounds of the names.
type Request struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"` // of its first byte
	Method   string    `json:"method"`
	Host     string    `json:"host,omitempty"`
	Path     string    `json:"path,omitempty"` // without its query; empty: not recorded
	Protocol string    `json:"protocol,omitempty"`
	Status   int       `json:"status"` // 0: the client was gone before there was one
	// GRPC is the grpc-status of a call by gRPC, whose Status is the one that stands for
	// it; nil: it was none.
	GRPC    *int   `json:"grpc_status,omitempty"`
	Route   string `json:"route,omitempty"`
	Product string `json:"product,omitempty"`

	Account string   `json:"account_id,omitempty"` // empty: nobody known
	Key     string   `json:"key_id,omitempty"`     // of the credential, whatever kind it is of
	Plan    string   `json:"plan,omitempty"`
	Scopes  []string `json:"scopes,omitempty"` // as granted

	Code   string `json:"code,omitempty"`   // with which the edge refused it
	Reason string `json:"reason,omitempty"` // what was wrong, in words
	Flags  string `json:"flags,omitempty"`  // Envoy's response flags
	// WouldRefuse is the code with which the edge would have refused it if its route did
	// not have that in the shadow, and WouldReason what was wrong, in words.
	WouldRefuse string `json:"would_refuse,omitempty"`
	WouldReason string `json:"would_reason,omitempty"`
	Detail      string `json:"detail,omitempty"` // Envoy's response code details
	// Failure is why the connection to the upstream failed.
	Failure  string `json:"failure,omitempty"`
	Upstream string `json:"upstream,omitempty"`
	Attempts int    `json:"attempts,omitempty"`

	Client    string `json:"client,omitempty"`
	UserAgent string `json:"user_agent,omitempty"`
	BytesIn   int64  `json:"bytes_in"`
	BytesOut  int64  `json:"bytes_out"`
	TraceID   string `json:"trace_id,omitempty"`

	Timings Timings `json:"timings"`
}

// Timings say when what had happened, in microseconds from the first byte of the
// request on; nil: it never did.
type Timings struct {
	Received  *int64 `json:"received_us,omitempty"`   // the last byte of the request
	Forwarded *int64 `json:"forwarded_us,omitempty"`  // the first byte to the upstream
	FirstByte *int64 `json:"first_byte_us,omitempty"` // of the upstream's answer
	Answered  *int64 `json:"answered_us,omitempty"`   // the last byte of it
	Total     int64  `json:"total_us"`                // the last byte to the client
}

// Ended is when the request did.
func (r Request) Ended() time.Time {
	return r.Time.Add(time.Duration(r.Timings.Total) * time.Microsecond)
}
