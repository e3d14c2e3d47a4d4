//! What is known of a boot besides its phases.

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
    /// IP packet size that the fragments of the newest read have, in bytes.
    mtu: ?u16 = null,
    cipher: ?stream.Cipher = null,
    program: ?Program = null,
};
