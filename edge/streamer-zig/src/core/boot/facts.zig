//! What a boot's first packets tell of its device, for the report.

const base = @import("base");
const stream = @import("wire").stream;

/// The first program that the device was told to load.
pub const Program = struct { set: base.UntrustedText, file: base.UntrustedText };

pub const Facts = struct {
    machine_id: ?base.Uuid = null,
    client_arch: ?u16 = null,
    vendor_class: base.UntrustedText = .empty,
    user_class: base.UntrustedText = .empty,
    ip: ?base.Ip4 = null,
    /// The address is the device's; otherwise only a packet says so.
    is_ip_confirmed: bool = false,
    /// IP packet size of the newest read's fragments, in bytes.
    mtu: ?u16 = null,
    cipher: ?stream.Cipher = null,
    program: ?Program = null,
};
