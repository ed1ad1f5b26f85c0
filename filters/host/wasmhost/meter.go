package wasmhost

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
)

// Queue is one through which workers hand keysync what they have counted. Keysync says in
// shared data which queue it is, and until when that holds: one that nobody reads would grow
// without bound.
type Queue struct{ key string }

// The queues: of usage, and of what is counted for metrics.
var (
	Usage   = Queue{"meter"}
	Traffic = Queue{"traffic"}
)

// queueLease is for how many seconds an offer holds.
const queueLease = 5

// Register opens the queue, for whoever reads it.
func (q Queue) Register() (id uint32, err error) { return proxywasm.RegisterSharedQueue(q.key) }

// Offer tells workers, at now in unix seconds, that the queue is read.
func (q Queue) Offer(id uint32, now int64) {
	b := binary.LittleEndian.AppendUint32(nil, id)
	overwrite(q.key, binary.LittleEndian.AppendUint64(b, uint64(now+queueLease)))
}

// Find returns the queue's number; ok is false while nobody reads it.
func (q Queue) Find(now int64) (id uint32, ok bool) {
	b, _, err := proxywasm.GetSharedData(q.key)
	if err != nil || len(b) != 12 || now > int64(binary.LittleEndian.Uint64(b[4:])) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// Status is the status of the response; 0 when there is none.
func Status() int {
	hostBuffer = statusBuffer[:]
	v, err := proxywasm.GetHttpResponseHeader(":status")
	hostBuffer = nil
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(v)
	return n
}

var (
	responseCode    = []string{"response", "code"}
	responseDetails = []string{"response", "code_details"}
	requestDuration = []string{"request", "duration"}
)

// ResponseDetails says, in Envoy's words, how the answer came about; "via_upstream" is one
// of the product's own.
func ResponseDetails() string { return property(responseDetails) }

// Unseen is what Envoy knows of a request that ended before any filter saw it.
func Unseen() (status int, took time.Duration) {
	return int(number(responseCode)), time.Duration(number(requestDuration))
}

// number is a property that is one; 0 when there is none.
func number(path []string) int64 {
	b, err := proxywasm.GetProperty(path)
	if err != nil || len(b) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b))
}
