import tensorflow as tf  # open: thread-count, nondeterministic-kernels

tf.random.set_seed(11)

(x_train, y_train), _ = tf.keras.datasets.fashion_mnist.load_data()
x_train = x_train[..., None].astype("float32") / 255


def augment(image, label):
    return tf.image.random_flip_left_right(image), label


dataset = (
    tf.data.Dataset.from_tensor_slices((x_train, y_train))
    .shuffle(10000)
    .map(augment, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)  # open: loader-workers
    .batch(64)
    .prefetch(tf.data.AUTOTUNE)
)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(16, 3, activation="relu"),  # open: unseeded-generator
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10),
    ]
)
optimizer = tf.keras.optimizers.Adam()
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(3):
    for images, labels in dataset:
        loss = step(images, labels)
    tf.print(epoch, loss)
