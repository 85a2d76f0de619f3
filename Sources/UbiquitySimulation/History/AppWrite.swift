// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The file of one store in one folder of a device.
package struct DiskReference: Hashable, Sendable, CustomStringConvertible {
    package var device: Int
    /// Each account has a folder of its own on a device.
    package var folder: String
    package var store: Int

    package init(device: Int, folder: String, store: Int) {
        (self.device, self.folder, self.store) = (device, folder, store)
    }

    package var description: String { "device \(device), folder \(folder), store \(store)" }
}

/// A write of one key that an app made and the store accepted. Its number is in the value, so that
/// whoever sees the value knows the write.
package struct AppWrite: Sendable {
    package var number: Int
    /// Equal for the keys of one transaction.
    package var batch: Int
    package var process: Int
    package var disk: DiskReference
    package var key: Key
    /// Nil for a deletion.
    package var value: PropertyListValue?
    /// The true time, in milliseconds.
    package var time: Int64
    /// The write whose value the app saw there when it wrote; nil if there was none or it is
    /// unknown.
    package var over: Int?
    /// Whether the app says that no history must have it.
    package var isUnkept: Bool

    package init(
        number: Int, batch: Int, process: Int, disk: DiskReference, key: Key,
        value: PropertyListValue?, time: Int64, over: Int?, isUnkept: Bool = false
    ) {
        self.number = number
        self.batch = batch
        self.process = process
        self.disk = disk
        self.key = key
        self.value = value
        self.time = time
        self.over = over
        self.isUnkept = isUnkept
    }
}

/// The mark of a write in its value.
package struct Mark: Hashable, Sendable {
    package var number: Int
    package var batch: Int

    package init(number: Int, batch: Int) { (self.number, self.batch) = (number, batch) }

    /// Fails for a value without a mark.
    package init?(_ value: PropertyListValue?) {
        switch value {
        // A run's count is an array of two numbers.
        case .array(let parts) where parts.count == 3: self.init(parts)
        case .string(let text):
            let parts = text.string.split(separator: ":")
            guard parts.count >= 2, let number = Int(parts[0]), let batch = Int(parts[1])
            else { return nil }
            self.init(number: number, batch: batch)
        case .dictionary(let parts):
            guard case .array(let parts)? = parts[ExactString("mark")] else { return nil }
            self.init(parts)
        default: return nil
        }
    }

    private init?(_ parts: [PropertyListValue]) {
        guard parts.count >= 2, case .integer(let number) = parts[0],
            case .integer(let batch) = parts[1]
        else { return nil }
        self.init(number: Int(number), batch: Int(batch))
    }

    /// - Parameter padding: The number of additional bytes in the value.
    package func value(padding: Int) -> PropertyListValue {
        switch number % 3 {
        case 0: .string(ExactString("\(number):\(batch):" + String(repeating: "x", count: padding)))
        case 1:
            .array([
                .integer(Int64(number)), .integer(Int64(batch)),
                .data(Array(repeating: 7, count: padding)),
            ])
        default:
            .dictionary([
                ExactString("mark"): .array([.integer(Int64(number)), .integer(Int64(batch))]),
                ExactString("rest"): .data(Array(repeating: 7, count: padding)),
            ])
        }
    }
}
