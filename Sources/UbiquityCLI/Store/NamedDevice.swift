// SPDX-License-Identifier: Apache-2.0

import Ubiquity

/// A device that a person refers to by its ID or the beginning of that, or by its name if only one
/// device has it.
protocol NamedDevice {
    var id: String { get }
    var name: String { get }
}

extension ServerDevice: NamedDevice {}
extension UbiquityDelivery.Device: NamedDevice {}

extension Array where Element: NamedDevice {
    /// - Throws: `none` if there is no such device, and another ``Failure`` if there are several.
    func device(_ text: String, orThrow none: Failure) throws(Failure) -> Element {
        if let device = first(where: { $0.id == text }) { return device }
        var found = filter { $0.name == text }
        if found.isEmpty, text.count >= String.idDigitsMin {
            found = filter { $0.id.hasPrefix(text.lowercased()) }
        }
        guard let device = found.first else { throw none }
        guard found.count == 1 else {
            let short = found.map(\.id.shortID)
            let ids = Set(short).count == short.count ? short : found.map(\.id)
            throw Failure(
                .badInput,
                "several devices are called \"\(text)\"; give the ID instead: "
                    + ids.joined(separator: ", "))
        }
        return device
    }
}

extension String {
    /// The beginning of a device's ID, which commands show and take in place of all of it.
    var shortID: String { String(prefix(8)) }

    fileprivate static let idDigitsMin = 4
}
