"""Record real conversations from a real server, for replay without one."""
