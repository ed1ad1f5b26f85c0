package outbound

import "slices"

// deniedPorts are those that an https:// URL may not name: the ports of protocols
// whose servers could take a stranger's bytes for commands (WHATWG Fetch, 2.9, "port
// blocking", which browsers follow too), those of databases and remote control, and
// that of plain HTTP. In order.
var deniedPorts = []uint16{
	1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 80, 87, 95,
	101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179,
	389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995,
	1433, 1521, 1719, 1720, 1723, 2049, 2375, 2379, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211, 27017,
}

// deniedPort reports whether the port is open only to hosts of the allow-list.
func (t target) deniedPort() bool {
	_, denied := slices.BinarySearch(deniedPorts, t.port)
	return denied
}
