package webhooks

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// crockford is the alphabet of ids, in lower case: without i, l, o and u.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID returns prefix and 26 characters: 48 bits of time, so that ids sort by
// it and indexes stay compact, and 80 random bits.
func newID(prefix string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	rand.Read(b[6:])
	return prefix + crockford.EncodeToString(b[:])
}

// deliveryPrefix begins every public id of a delivery.
const deliveryPrefix = "dlv_"

// DeliveryID is the public form of a delivery's number: "dlv_" and 13
// characters, which sort as the numbers do.
func DeliveryID(number int64) string {
	return fmt.Sprintf("%s%013s", deliveryPrefix, strconv.FormatInt(number, 36))
}

// parseDeliveryID returns the number in id; ok is false unless DeliveryID
// would give exactly id for it.
func parseDeliveryID(id string) (number int64, ok bool) {
	number, err := strconv.ParseInt(strings.TrimPrefix(id, deliveryPrefix), 36, 64)
	return number, err == nil && number > 0 && DeliveryID(number) == id
}
