package wasmhost

import (
	"encoding/binary"
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
)

// meterKey is where keysync says into which queue workers put their usage, and
// until when that holds: a queue that nobody reads would grow without bound.
const meterKey = "meter"

// meterLease is for how many seconds an offer holds.
const meterLease = 5

// OfferMeterQueue tells workers, at now in unix seconds, that the queue is read.
func OfferMeterQueue(queue uint32, now int64) {
	b := binary.LittleEndian.AppendUint32(nil, queue)
	overwrite(meterKey, binary.LittleEndian.AppendUint64(b, uint64(now+meterLease)))
}

// MeterQueue returns the queue for usage; ok is false while nobody reads it.
func MeterQueue(now int64) (queue uint32, ok bool) {
	b, _, err := proxywasm.GetSharedData(meterKey)
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
