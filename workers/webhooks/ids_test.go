package webhooks

import "testing"

func TestDeliveryIDs(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 35, 36, 1 << 62} {
		if got, ok := parseDeliveryID(DeliveryID(n)); !ok || got != n || len(DeliveryID(n)) != 17 {
			t.Errorf("%d: %s, %d, %v", n, DeliveryID(n), got, ok)
		}
	}
	for _, bad := range []string{"", "dlv_", "dlv_1", "dlv_000000000000A", "0000000000001", "dlv_0000000000000", "dlv_-000000000001", "dlv_zzzzzzzzzzzzzz"} {
		if n, ok := parseDeliveryID(bad); ok {
			t.Errorf("%q is %d", bad, n)
		}
	}
}

func FuzzParseDeliveryID(f *testing.F) {
	f.Add("dlv_0000000000001")
	f.Add("dlv_+00000000001")
	f.Fuzz(func(t *testing.T, id string) {
		if n, ok := parseDeliveryID(id); ok && DeliveryID(n) != id {
			t.Errorf("%q is read as %d", id, n)
		}
	})
}
