package webhooks

import (
	"fmt"
	"strconv"
	"strings"
)

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
